//! What differs between client and server: how a connection is made, and when
//! it has received all that belongs to the handshake.
//!
//! Neighbours: `endpoint` and `unbuffered` are generic over it.

use std::ops::DerefMut;
use std::sync::Arc;

use anyhow::Result;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::{DnsName, ServerName};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{UnbufferedConnectionCommon, UnbufferedStatus};
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, ServerConfig, ServerConnection};

use super::setup::Setup;

/// One side of a buffered connection.
pub trait Side {
    /// What rustls keeps for this side.
    type Data;
    /// The connection.
    type Conn: DerefMut<Target = ConnectionCommon<Self::Data>>;
    /// Whether it is the server.
    const IS_SERVER: bool;

    /// Makes a connection; a client's has its first message ready to send.
    ///
    /// # Errors
    /// The configuration does not allow it.
    fn connect(&self) -> Result<Self::Conn>;

    /// Whether everything that follows the handshake proper has been received.
    fn settled(&self, conn: &Self::Conn) -> bool;
}

/// One side of a connection of the unbuffered API.
pub trait UnbufferedSide {
    /// What rustls keeps for this side.
    type Data;
    /// The connection.
    type Conn: DerefMut<Target = UnbufferedConnectionCommon<Self::Data>>;
    /// Whether it is the server.
    const IS_SERVER: bool;

    /// Makes a connection.
    ///
    /// # Errors
    /// The configuration does not allow it.
    fn open(&self) -> Result<Self::Conn>;

    /// Whether everything that follows the handshake proper has been received.
    fn settled(&self, conn: &Self::Conn) -> bool;

    /// Processes what has arrived.
    fn process<'c, 'i>(
        conn: &'c mut Self::Conn,
        arrived: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

/// Connects to `localhost`.
#[derive(Clone, Debug)]
pub struct ClientSide {
    config: Arc<ClientConfig>,
    tickets: u32,
}

/// Accepts.
#[derive(Clone, Debug)]
pub struct ServerSide {
    config: Arc<ServerConfig>,
}

impl ClientSide {
    /// A client with a configuration of its own.
    ///
    /// # Errors
    /// See [`Setup::client`].
    pub fn new(setup: &Setup) -> Result<Self> {
        Ok(Self { config: setup.client()?, tickets: setup.tickets() })
    }

    fn peer() -> Result<ServerName<'static>> {
        Ok(ServerName::DnsName(DnsName::try_from("localhost")?))
    }
}

impl ServerSide {
    /// A server with a configuration of its own.
    ///
    /// # Errors
    /// See [`Setup::server`].
    pub fn new(setup: &Setup) -> Result<Self> {
        Ok(Self { config: setup.server()? })
    }
}

impl Side for ClientSide {
    type Data = ClientConnectionData;
    type Conn = ClientConnection;
    const IS_SERVER: bool = false;

    fn connect(&self) -> Result<ClientConnection> {
        let mut conn = ClientConnection::new(Arc::clone(&self.config), Self::peer()?)?;
        conn.set_buffer_limit(None);
        Ok(conn)
    }

    fn settled(&self, conn: &ClientConnection) -> bool {
        conn.tls13_tickets_received() >= self.tickets
    }
}

impl Side for ServerSide {
    type Data = ServerConnectionData;
    type Conn = ServerConnection;
    const IS_SERVER: bool = true;

    fn connect(&self) -> Result<ServerConnection> {
        let mut conn = ServerConnection::new(Arc::clone(&self.config))?;
        conn.set_buffer_limit(None);
        Ok(conn)
    }

    fn settled(&self, _conn: &ServerConnection) -> bool {
        true
    }
}

impl UnbufferedSide for ClientSide {
    type Data = ClientConnectionData;
    type Conn = UnbufferedClientConnection;
    const IS_SERVER: bool = false;

    fn open(&self) -> Result<UnbufferedClientConnection> {
        Ok(UnbufferedClientConnection::new(Arc::clone(&self.config), Self::peer()?)?)
    }

    fn settled(&self, conn: &UnbufferedClientConnection) -> bool {
        conn.tls13_tickets_received() >= self.tickets
    }

    fn process<'c, 'i>(
        conn: &'c mut Self::Conn,
        arrived: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        conn.process_tls_records(arrived)
    }
}

impl UnbufferedSide for ServerSide {
    type Data = ServerConnectionData;
    type Conn = UnbufferedServerConnection;
    const IS_SERVER: bool = true;

    fn open(&self) -> Result<UnbufferedServerConnection> {
        Ok(UnbufferedServerConnection::new(Arc::clone(&self.config))?)
    }

    fn settled(&self, _conn: &UnbufferedServerConnection) -> bool {
        true
    }

    fn process<'c, 'i>(
        conn: &'c mut Self::Conn,
        arrived: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        conn.process_tls_records(arrived)
    }
}
