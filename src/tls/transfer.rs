//! Application data in one direction, over a buffered connection.
//!
//! Neighbours: `content` says what is sent; `endpoint` calls it.

use std::io::{BufRead, Write};

use anyhow::{Result, ensure};
use rustls::ConnectionCommon;

use super::content::{Content, Receipt};
use super::endpoint::flush;
use super::link::{Inbox, Outbox, Progress};

/// More than header, explicit nonce, content type and tag of a record add.
pub(super) const RECORD_OVERHEAD: usize = 64;

/// Data to send, in pieces that make one record each.
#[derive(Debug)]
pub struct Outgoing {
    content: Content,
    sent: u64,
    total: u64,
    piece: usize,
}

impl Outgoing {
    /// `total` bytes, in records of `piece` bytes: a divisor of 16,384, or the
    /// last record of each 16 KiB is shorter.
    pub fn new(total: u64, piece: usize) -> Self {
        Self { content: Content::new(), sent: 0, total, piece }
    }

    /// Sends as many whole records as there is room for.
    pub(super) fn turn<D>(
        &mut self,
        conn: &mut ConnectionCommon<D>,
        outbox: &mut impl Outbox,
    ) -> Result<Progress> {
        flush(conn, outbox)?;
        while outbox.room() >= self.piece + RECORD_OVERHEAD {
            if self.next_piece().is_empty() {
                return Ok(Progress::Done);
            }
            self.say(conn)?;
            flush(conn, outbox)?;
        }
        Ok(Progress::More)
    }

    /// Encrypts the next piece, all of it, since the buffers of our connections have no limit.
    pub(super) fn say<D>(&mut self, conn: &mut ConnectionCommon<D>) -> Result<()> {
        let piece = self.next_piece();
        let n = conn.writer().write(piece)?;
        ensure!(n == piece.len(), "rustls took {n} bytes of {}", piece.len());
        self.advance(n);
        Ok(())
    }

    /// What is to be sent next; empty at the end.
    pub(super) fn next_piece(&self) -> &'static [u8] {
        self.content.piece(self.sent, self.total, self.piece)
    }

    pub(super) fn advance(&mut self, n: usize) {
        self.sent += n as u64;
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// # Errors
    /// Not all was sent.
    pub fn check(&self) -> Result<()> {
        ensure!(self.sent == self.total, "sent {} bytes of {}", self.sent, self.total);
        Ok(())
    }
}

/// Data to receive.
#[derive(Debug)]
pub struct Incoming {
    receipt: Receipt,
}

impl Incoming {
    /// `total` bytes. All of them are compared with what was to be sent if it
    /// is to be `thorough`, else the first and last bytes of each record.
    pub fn new(total: u64, thorough: bool) -> Self {
        Self { receipt: Receipt::new(total, thorough) }
    }

    /// Takes and decrypts all that has arrived.
    pub(super) fn turn<D>(
        &mut self,
        conn: &mut ConnectionCommon<D>,
        inbox: &mut impl Inbox,
    ) -> Result<Progress> {
        while !inbox.waiting().is_empty() {
            conn.read_tls(inbox)?;
            let mut left = conn.process_new_packets()?.plaintext_bytes_to_read();
            let mut reader = conn.reader();
            while left > 0 {
                let chunk = reader.fill_buf()?;
                self.receipt.take(chunk)?;
                let n = chunk.len();
                reader.consume(n);
                left -= n;
            }
        }
        Ok(if self.receipt.is_complete() { Progress::Done } else { Progress::Wait })
    }

    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.receipt.take(bytes)
    }

    pub(super) fn got(&self) -> u64 {
        self.receipt.got()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.receipt.is_complete()
    }

    /// # Errors
    /// Not all was received.
    pub fn check(&self) -> Result<()> {
        self.receipt.check()
    }
}
