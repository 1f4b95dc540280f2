//! Writing without a guest's data in plain: compressed clusters, packed one
//! after the other, and clusters that are allocated ahead.
//!
//! Neighbours: `compress` encodes; `alloc` and `table` as for any write.

use super::super::error::{Error, ErrorKind, Result};
use super::compress::check_whole;
use super::create::Preallocation;
use super::entry::{self, Cluster, L2Entry, Standard};
use super::image::{Image, State};
use super::sync::lock;
use super::types::HostOffset;

impl Image {
    /// Writes one cluster compressed, or plain when that does not make it smaller. `guest` is a
    /// cluster's start and `data` a whole cluster; the disk's last one may be shorter.
    pub fn write_compressed(&self, guest: u64, data: &[u8]) -> Result<()> {
        let result = self.write_compressed_checked(guest, data);
        self.finish(result)
    }

    fn write_compressed_checked(&self, guest: u64, data: &[u8]) -> Result<()> {
        self.check_writable()?;
        self.check_range(guest, data.len() as u64)?;
        let size = self.geo.cluster_size();
        if self.geo.data_file {
            let message = "no compressed clusters with an external data file";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if !self.geo.aligned(guest) {
            return Err(Error::new(ErrorKind::InvalidInput, "not at a cluster's start"));
        }
        let at_end = guest + data.len() as u64 == self.size() && !data.is_empty();
        if !at_end {
            check_whole(data.len(), size)?;
        }
        self.relieve()?;
        let cluster = self.geo.cluster_of(guest);
        let _range = self.ranges.lock(cluster, cluster)?;
        let placed = self.buffers.with(2 * size as usize, |buf| {
            let (plain, packed) = buf.split_at_mut(size as usize);
            plain[..data.len()].copy_from_slice(data);
            plain[data.len()..].fill(0);
            let room = packed.len() - 1;
            match self.codecs.encode(self.compression, plain, &mut packed[..room])? {
                Some(len) => self.place_compressed(cluster, &packed[..len]),
                None => Ok(false),
            }
        })?;
        if placed { Ok(()) } else { self.write_locked(guest, data) }
    }

    /// Stores packed bytes and points `cluster` at them; `false` if the entry cannot say where.
    fn place_compressed(&self, cluster: u64, packed: &[u8]) -> Result<bool> {
        let len = packed.len() as u64;
        let mut state = lock(&self.state);
        self.own_table(&mut state, cluster)?;
        let host = self.allocate_bytes(&mut state, len)?;
        drop(state);
        let result = match entry::encode_compressed(host, len, &self.geo) {
            None => Ok(false),
            Some(entry) => self.store_compressed(cluster, host, packed, entry).map(|()| true),
        };
        if !matches!(result, Ok(true)) {
            let mut state = lock(&self.state);
            state.tail = None;
            for taken in self.geo.cluster_of(host.0)..=self.geo.cluster_of(host.0 + len - 1) {
                state.refs.lower(&*self.file, taken)?;
            }
        }
        result
    }

    fn store_compressed(&self, cluster: u64, host: HostOffset, packed: &[u8], entry: L2Entry) -> Result<()> {
        self.file.write_at(packed, host.0)?;
        self.reaches(host.0 + packed.len() as u64);
        let mut state = lock(&self.state);
        self.change_entries(&mut state, cluster, 1, |_, _| Some(entry), false)
    }

    /// Room for `len` bytes, less than a cluster: behind the last compressed cluster where it fits,
    /// into the next host cluster where that is free. Each host cluster touched gets a reference.
    fn allocate_bytes(&self, state: &mut State, len: u64) -> Result<HostOffset> {
        let size = self.geo.cluster_size();
        if let Some(tail) = state.tail.take() {
            let cluster = self.geo.cluster_of(tail.0);
            let room = size - self.geo.within(tail.0);
            let count = state.refs.get(&*self.file, cluster)?;
            let joins = count > 0 && count < self.geo.refcount_max();
            if joins && len <= room {
                state.refs.raise(&*self.file, cluster)?;
                state.tail = Some(HostOffset(tail.0 + len)).filter(|_| len < room);
                return Ok(tail);
            }
            let run = self.allocate(state, 1)?;
            let next = self.geo.cluster_of(run.host.0);
            if joins && next == cluster + 1 {
                state.refs.raise(&*self.file, cluster)?;
                state.tail = Some(HostOffset(tail.0 + len));
                return Ok(tail);
            }
            state.tail = Some(HostOffset(run.host.0 + len));
            return Ok(run.host);
        }
        let run = self.allocate(state, 1)?;
        state.tail = Some(HostOffset(run.host.0 + len));
        Ok(run.host)
    }

    /// Allocates up to `count` clusters from `cluster` on, which read as zeroes; returns how many.
    pub(super) fn preallocate_run(&self, cluster: u64, count: u64, how: Preallocation) -> Result<u64> {
        let size = self.geo.cluster_size();
        let left = self.per_slice() - cluster % self.per_slice();
        let run = self.allocate_data(cluster, count.min(left))?;
        let bytes = run.count * size;
        let target = self.target();
        match how {
            Preallocation::Falloc => target.allocate(run.host.0, bytes)?,
            Preallocation::Full => self.write_zero_bytes(run.host.0, bytes)?,
            _ if target.len()? < run.host.0 + bytes => target.set_len(run.host.0 + bytes)?,
            _ => {}
        }
        if !self.geo.data_file {
            self.reaches(run.host.0 + bytes);
        }
        let mut state = lock(&self.state);
        let change = |at: u64, old: Cluster| {
            let host = Some(HostOffset(run.host.0 + (at - cluster) * size));
            let new = Standard { host, copied: true, alloc: u32::MAX, zero: 0 };
            (old == Cluster::UNALLOCATED).then(|| entry::encode_l2(new, &self.geo))
        };
        self.change_entries(&mut state, cluster, run.count, change, false)?;
        Ok(run.count)
    }

    fn write_zero_bytes(&self, host: u64, len: u64) -> Result<()> {
        let zeroes = super::super::io::ZEROES;
        let mut done = 0;
        while done < len {
            let step = (len - done).min(zeroes.len() as u64);
            self.target().write_at(&zeroes[..step as usize], host + done)?;
            done += step;
        }
        Ok(())
    }
}
