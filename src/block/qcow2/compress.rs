//! Codecs of compressed clusters, with contexts that are kept between
//! clusters (specification: "Compressed Clusters Descriptor", `compression_type`).
//!
//! Neighbours: `read` decodes, `compressed` encodes and places the result.
//! Output is bounded by the buffer that the caller gives.

use std::sync::Mutex;

use libdeflater::{CompressionLvl, Compressor, Decompressor};
use zstd::bulk;
use zstd::zstd_safe;

use super::super::error::{Error, ErrorKind, Result};
use super::image::corrupt;
use super::sync::lock;
use super::types::Compression;

/// Level of both methods: their usual middle.
const ZSTD_LEVEL: i32 = 3;

enum Decoder {
    Zlib(Decompressor),
    Zstd(bulk::Decompressor<'static>),
}

enum Encoder {
    Zlib(Compressor),
    Zstd(bulk::Compressor<'static>),
}

/// Decoders and encoders that are not in use; each thread takes one for a cluster.
#[derive(Default)]
pub struct Codecs {
    decoders: Mutex<Vec<Decoder>>,
    encoders: Mutex<Vec<Encoder>>,
}

impl Codecs {
    /// Decodes one cluster: fills `out` exactly, or fails. `input` may go on after the end of the
    /// compressed data, up to the end of its sector.
    pub fn decode(&self, kind: Compression, input: &[u8], out: &mut [u8]) -> Result<()> {
        let idle = lock(&self.decoders).pop();
        let mut decoder = match idle {
            Some(decoder) => decoder,
            None => match kind {
                Compression::Zlib => Decoder::Zlib(Decompressor::new()),
                Compression::Zstd => {
                    let new = bulk::Decompressor::new();
                    Decoder::Zstd(new.map_err(|e| Error::io("zstd decoder", e))?)
                }
            },
        };
        let expected = out.len();
        let result = match &mut decoder {
            Decoder::Zlib(zlib) => zlib.deflate_decompress(input, out).map_err(|e| e.to_string()),
            Decoder::Zstd(zstd) => decode_zstd(zstd, input, out),
        };
        lock(&self.decoders).push(decoder);
        match result {
            Ok(len) if len == expected => Ok(()),
            Ok(len) => Err(corrupt(format!("compressed cluster holds {len} bytes"))),
            Err(text) => Err(corrupt(format!("compressed cluster: {text}"))),
        }
    }

    /// Encodes one cluster into `out`; `None` if it does not fit there.
    pub fn encode(&self, kind: Compression, input: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
        let idle = lock(&self.encoders).pop();
        let mut encoder = match idle {
            Some(encoder) => encoder,
            None => match kind {
                Compression::Zlib => Encoder::Zlib(Compressor::new(CompressionLvl::default())),
                Compression::Zstd => {
                    let new = bulk::Compressor::new(ZSTD_LEVEL);
                    Encoder::Zstd(new.map_err(|e| Error::io("zstd encoder", e))?)
                }
            },
        };
        let len = match &mut encoder {
            Encoder::Zlib(zlib) => zlib.deflate_compress(input, out).ok(),
            Encoder::Zstd(zstd) => zstd.compress_to_buffer(input, out).ok(),
        };
        lock(&self.encoders).push(encoder);
        Ok(len)
    }
}

/// One frame at the start of `input`; the padding after it is not a second frame.
fn decode_zstd(
    decoder: &mut bulk::Decompressor<'static>,
    input: &[u8],
    out: &mut [u8],
) -> std::result::Result<usize, String> {
    let frame = zstd_safe::find_frame_compressed_size(input)
        .map_err(|code| zstd_safe::get_error_name(code).to_owned())?;
    let frame = input.get(..frame).ok_or("frame longer than its sectors")?;
    decoder.decompress_to_buffer(frame, out).map_err(|error| error.to_string())
}

/// Refuses a cluster that is not whole.
pub(super) fn check_whole(len: usize, cluster_size: u64) -> Result<()> {
    if len as u64 == cluster_size {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "only whole clusters can be compressed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(len: usize) -> Vec<u8> {
        b"all work and no play ".iter().copied().cycle().take(len).collect()
    }

    #[test]
    fn both_methods_round_trip_with_padding_and_reuse() {
        for kind in [Compression::Zlib, Compression::Zstd] {
            let codecs = Codecs::default();
            for size in [512, 65536, 2 << 20] {
                let plain = text(size);
                let mut packed = vec![0; size];
                let len = codecs.encode(kind, &plain, &mut packed);
                let len = len.ok().flatten().unwrap_or(0);
                assert!(len > 0 && len < size);
                let mut out = vec![1; size];
                let padded = (len + 400).min(size);
                assert!(codecs.decode(kind, &packed[..padded], &mut out).is_ok());
                assert!(out == plain);
                assert!(codecs.decode(kind, &packed[..len - 1], &mut out).is_err());
                assert!(codecs.decode(kind, &packed[..padded], &mut out[..size - 1]).is_err());
                assert!(codecs.decode(kind, &[0xff; 600], &mut out).is_err());
            }
        }
    }
}
