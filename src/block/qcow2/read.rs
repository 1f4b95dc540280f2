//! Reading: extents one after the other, each with one request.
//!
//! Neighbours: `map` gives the extents, `compress` decodes, `backing` has what
//! is not here, `sync` the epochs. A read takes no exclusive lock when its mapping is in memory.

use super::super::error::Result;
use super::entry::Compressed;
use super::image::{Image, corrupt};
use super::map::{Extent, Source};

impl Image {
    /// Fills `buf` with the disk's bytes from `guest` on.
    pub fn read(&self, guest: u64, buf: &mut [u8]) -> Result<()> {
        let checked = self.check_range(guest, buf.len() as u64);
        let epoch = self.gate.epoch();
        let result = checked.and_then(|()| self.read_unchecked(guest, buf));
        match result {
            _ if !self.gate.is_still(epoch) => self.read_again(guest, buf),
            Ok(()) => Ok(()),
            failed => self.finish(failed),
        }
    }

    /// Reads with a ticket: a flush ended meanwhile, and what was read may come from a cluster that was
    /// freed and handed out again.
    #[cold]
    fn read_again(&self, guest: u64, buf: &mut [u8]) -> Result<()> {
        let ticket = self.gate.enter();
        let result = self.check_range(guest, buf.len() as u64);
        let result = result.and_then(|()| self.read_unchecked(guest, buf));
        drop(ticket);
        self.finish(result)
    }

    /// Reads without the check against the disk's size: copies may reach to a cluster's end.
    pub(super) fn read_unchecked(&self, guest: u64, buf: &mut [u8]) -> Result<()> {
        let Extent { len, source, .. } = match buf.len() {
            0 => return Ok(()),
            len => self.extent_unchecked(guest, len as u64)?,
        };
        if len == buf.len() as u64 {
            return self.read_part(guest, source, buf);
        }
        let mut extents = self.extents(guest, buf.len() as u64);
        let mut rest = buf;
        while let Some(extent) = extents.next()? {
            let (part, after) = rest.split_at_mut(extent.len as usize);
            self.read_part(extent.guest.0, extent.source, part)?;
            rest = after;
        }
        Ok(())
    }

    fn read_part(&self, guest: u64, source: Source, buf: &mut [u8]) -> Result<()> {
        match source {
            Source::Data(host) => {
                let got = self.target().read_at(buf, host.0);
                let got = got.map_err(|e| e.with_guest(guest).with_host(host.0))?;
                if got < buf.len() {
                    // Only what is past the end of the file is zero.
                    buf[got..].fill(0);
                }
                Ok(())
            }
            Source::Zero => {
                buf.fill(0);
                Ok(())
            }
            Source::Unallocated => self.read_backing(guest, buf),
            Source::Compressed(compressed) => self.read_compressed(guest, compressed, buf),
        }
    }

    pub(super) fn read_backing(&self, guest: u64, buf: &mut [u8]) -> Result<()> {
        match &self.backing {
            Some(backing) => backing.read(guest, buf).map_err(|e| Self::backing_error(&e)),
            None => {
                buf.fill(0);
                Ok(())
            }
        }
    }

    fn read_compressed(&self, guest: u64, compressed: Compressed, buf: &mut [u8]) -> Result<()> {
        let decoded = self.buffers.with(compressed.len as usize, |input| {
            let got = self.file.read_at(input, compressed.host.0)?;
            if got == 0 {
                return Err(corrupt("compressed cluster past end of file"));
            }
            // The last sector may end beyond the end of the file.
            self.decode_part(guest, &input[..got], buf)
        });
        decoded.map_err(|e| e.with_guest(guest).with_host(compressed.host.0))
    }

    /// Fills `out` with what the compressed cluster at `guest` has from there on; `input` is the
    /// cluster as stored.
    pub(super) fn decode_part(&self, guest: u64, input: &[u8], out: &mut [u8]) -> Result<()> {
        if out.len() as u64 == self.geo.cluster_size() {
            return self.codecs.decode(self.compression, input, out);
        }
        self.decoded(input, |whole| {
            let within = self.geo.within(guest) as usize;
            out.copy_from_slice(&whole[within..within + out.len()]);
        })
    }

    /// Shows a compressed cluster decoded.
    pub(super) fn decoded(&self, input: &[u8], see: impl FnOnce(&[u8])) -> Result<()> {
        self.buffers.with(self.geo.cluster_size() as usize, |whole| {
            self.codecs.decode(self.compression, input, whole)?;
            see(whole);
            Ok(())
        })
    }
}
