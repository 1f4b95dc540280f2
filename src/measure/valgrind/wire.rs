//! The link between two parties that run in processes of their own: pipes,
//! cut into frames so that what one read brings never depends on timing.
//!
//! A frame is at most 4,096 bytes with its header and is written by one call,
//! which a pipe takes whole (`PIPE_BUF`); it is read as header, then body, each
//! exactly. So the number of calls and of pieces is the same in each run.
//!
//! Neighbours: `child` makes one of standard input and output.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};

use anyhow::{Result, ensure};

use crate::scenario::{Pipe, Wire};

/// The largest frame, which a pipe takes whole.
const FRAME: usize = 4096;
const HEADER: usize = 4;
/// The largest piece of a party's bytes.
const PIECE: usize = FRAME - HEADER;
/// The second half of a header, to tell a frame from rubbish.
const MARK: [u8; 2] = *b"wg";

/// The other party is gone: the cause is there, not here.
#[derive(Debug)]
pub(super) struct Abandoned;

impl std::fmt::Display for Abandoned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the other party's process has ended")
    }
}

impl std::error::Error for Abandoned {}

/// Frames over a pair of pipes.
pub(super) struct Framed {
    input: File,
    output: File,
    body: Box<[u8; PIECE]>,
}

impl Framed {
    pub(super) fn new(input: File, output: File) -> Self {
        Self { input, output, body: Box::new([0; PIECE]) }
    }
}

impl Wire for Framed {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(PIECE) {
            let [low, high] = (piece.len() as u16).to_le_bytes();
            let header = [low, high, MARK[0], MARK[1]];
            let frame = [IoSlice::new(&header), IoSlice::new(piece)];
            let written = loop {
                match self.output.write_vectored(&frame) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    other => break other.map_err(gone)?,
                }
            };
            ensure!(written == HEADER + piece.len(), "the pipe took {written} bytes of a frame");
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut Pipe) -> Result<()> {
        let mut header = [0; HEADER];
        self.input.read_exact(&mut header).map_err(gone)?;
        let [low, high, mark @ ..] = header;
        let length = usize::from(u16::from_le_bytes([low, high]));
        ensure!(mark == MARK && length <= PIECE, "what the other party's process sent is not a frame");
        let body = &mut self.body[..length];
        self.input.read_exact(body).map_err(gone)?;
        ensure!(into.push(body) == length, "the pipe of this party has no room for a frame");
        Ok(())
    }

    fn piece(&self) -> usize {
        PIECE
    }
}

/// An end of file means that the other process is gone.
#[cold]
fn gone(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => Abandoned.into(),
        _ => anyhow::Error::from(error).context("the wire between the parties"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Framed, Framed) {
        let (a_in, b_out) = io::pipe().expect("a pipe");
        let (b_in, a_out) = io::pipe().expect("a pipe");
        let file = |fd: std::os::fd::OwnedFd| File::from(fd);
        (
            Framed::new(file(a_in.into()), file(a_out.into())),
            Framed::new(file(b_in.into()), file(b_out.into())),
        )
    }

    #[test]
    fn pieces_come_as_they_were_sent_and_an_end_names_the_other_party() {
        let (mut a, mut b) = pair();
        let sent: Vec<u8> = (0..10_000_u32).map(|i| i as u8).collect();
        a.send(&sent).expect("room in the pipe");
        let mut into = Pipe::new(16_384);
        for expected in [PIECE, 2 * PIECE, 10_000] {
            b.receive(&mut into).expect("a frame");
            assert_eq!(into.len(), expected);
        }
        assert_eq!(into.readable(), sent);
        drop(a);
        let error = b.receive(&mut into).expect_err("the end");
        assert!(error.is::<Abandoned>());
        assert!(b.send(b"x").expect_err("nobody reads").is::<Abandoned>());
    }

    #[test]
    fn rubbish_is_an_error() {
        let (mut a, mut b) = pair();
        a.output.write_all(b"hello, world").expect("room in the pipe");
        let error = b.receive(&mut Pipe::new(8192)).expect_err("not a frame");
        assert!(error.to_string().contains("not a frame"), "{error}");
    }
}
