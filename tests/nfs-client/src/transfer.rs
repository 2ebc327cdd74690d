//! Whole files, with many calls in flight.
//!
//! Owns: splitting a file into calls, and the window of calls in flight.
//! Does not own: single calls (`procedures`).
//! Invariants: at most `window` calls are in flight; data arrives at its offset in any order of replies. A write is
//! done only when its COMMIT has the verifier of every WRITE.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use nfs3_types::nfs3::{READ3args, READ3resok, WRITE3args, WRITE3resok, writeverf3};

use crate::connection::{Client, Error, NFS, split_reply};
use crate::procedures::{Arguments, check_status, fh, packed, read_in_place, unpacked};
use crate::wire::{Fields, Results};

/// A call of a transfer.
struct Piece {
    offset: u64,
    len: u32,
}

impl Client {
    /// Writes `data` from `offset` on with unstable WRITEs of `block` bytes, `window` of them in flight, then commits.
    /// An error if the verifier changed meanwhile, since the data may be lost.
    pub fn write_all(
        &mut self,
        file: &[u8],
        offset: u64,
        data: &[u8],
        block: usize,
        window: usize,
    ) -> Result<(), Error> {
        let verifiers = self.write_unstable(file, offset, data, block, window)?;
        let committed = self.commit(file, 0, 0)?;
        if verifiers.iter().any(|verifier| *verifier != committed.verf) {
            return Err(io::Error::other("the verifier changed: written data may be lost").into());
        }
        Ok(())
    }

    /// The WRITEs of [`Client::write_all`] alone; returns when all are answered. The data is durable only after a
    /// COMMIT that answers with the returned verifier.
    pub fn write_unstable(
        &mut self,
        file: &[u8],
        offset: u64,
        data: &[u8],
        block: usize,
        window: usize,
    ) -> Result<Vec<writeverf3>, Error> {
        let mut sent = 0;
        let mut in_flight: HashMap<u32, Piece> = HashMap::new();
        let mut verifiers = Vec::new();
        while sent < data.len() || !in_flight.is_empty() {
            while sent < data.len() && in_flight.len() < window.max(1) {
                let len = block.max(1).min(data.len() - sent);
                let at = offset + sent as u64;
                // The arguments of an UNSTABLE WRITE, without the bytes.
                let head = Fields::default().opaque(file).u64(at).u32(len as u32).u32(0).u32(len as u32);
                let (number, _) = WRITE3args::PROCEDURE;
                let xid = self.send_data(NFS, number, &head.0, &data[sent..sent + len])?;
                in_flight.insert(xid, Piece { offset: at, len: len as u32 });
                sent += len;
            }
            let (piece, written) = self.receive_written(&mut in_flight)?;
            if written.count != piece.len {
                let text = format!("{} of {} bytes written at {}", written.count, piece.len, piece.offset);
                return Err(io::Error::other(text).into());
            }
            if !verifiers.contains(&written.verf) {
                verifiers.push(written.verf);
            }
        }
        Ok(verifiers)
    }

    fn receive_written(&mut self, in_flight: &mut HashMap<u32, Piece>) -> Result<(Piece, WRITE3resok), Error> {
        let record = self.receive_raw()?;
        let (piece, mut results) = answered(&record, in_flight)?;
        self.check_piece("WRITE", &mut results, in_flight)?;
        Ok((piece, unpacked(results.0)?))
    }

    /// Reads a piece's status. A refusal ends the transfer, so the replies to its other pieces are taken: the next call
    /// must not meet them.
    fn check_piece(
        &mut self,
        procedure: &'static str,
        results: &mut Results<'_>,
        in_flight: &mut HashMap<u32, Piece>,
    ) -> Result<(), Error> {
        let checked = check_status(procedure, results);
        while checked.is_err() && !in_flight.is_empty() {
            answered(&self.receive_raw()?, in_flight)?;
        }
        checked
    }

    /// Reads `len` bytes from `offset` on with READs of `block` bytes, `window` of them in flight. Returns fewer if the
    /// file ends before.
    pub fn read_all(
        &mut self,
        file: &[u8],
        offset: u64,
        len: usize,
        block: usize,
        window: usize,
    ) -> Result<Vec<u8>, Error> {
        let mut data = vec![0; len];
        let end = self.read_each(file, offset..offset + len as u64, block, window, |at, bytes| {
            let at = (at - offset) as usize;
            data[at..at + bytes.len()].copy_from_slice(bytes);
        })?;
        data.truncate((end - offset) as usize);
        Ok(data)
    }

    /// Reads a range like [`Client::read_all`] and calls `each` with the bytes and their offset, in any order. Returns
    /// the end of the range, or of the file if that is earlier.
    pub fn read_each(
        &mut self,
        file: &[u8],
        range: Range<u64>,
        block: usize,
        window: usize,
        mut each: impl FnMut(u64, &[u8]),
    ) -> Result<u64, Error> {
        let Range { start: mut asked, mut end } = range;
        let mut in_flight: HashMap<u32, Piece> = HashMap::new();
        while asked < end || !in_flight.is_empty() {
            while asked < end && in_flight.len() < window.max(1) {
                let len = (block.max(1) as u64).min(end - asked) as u32;
                self.ask(file, Piece { offset: asked, len }, &mut in_flight)?;
                asked += u64::from(len);
            }
            let record = self.receive_raw()?;
            let (piece, mut results) = answered(&record, &mut in_flight)?;
            self.check_piece("READ", &mut results, &mut in_flight)?;
            let READ3resok { eof, data, .. } = read_in_place(&mut results)?;
            let got = data.len() as u32;
            if got > piece.len {
                return Err(io::Error::other("more bytes than asked for").into());
            }
            each(piece.offset, &data);
            if eof {
                end = end.min(piece.offset + u64::from(got));
            } else if got == 0 {
                return Err(io::Error::other("no bytes, and not the end of the file").into());
            } else if got < piece.len {
                let rest = Piece { offset: piece.offset + u64::from(got), len: piece.len - got };
                self.ask(file, rest, &mut in_flight)?;
            }
        }
        Ok(end)
    }

    fn ask(&mut self, file: &[u8], piece: Piece, in_flight: &mut HashMap<u32, Piece>) -> Result<(), Error> {
        let arguments = READ3args { file: fh(file), offset: piece.offset, count: piece.len };
        let xid = self.send(NFS, READ3args::PROCEDURE.0, &packed(&arguments))?;
        in_flight.insert(xid, piece);
        Ok(())
    }
}

/// The piece that a reply answers, and the reply's results.
fn answered<'a>(record: &'a [u8], in_flight: &mut HashMap<u32, Piece>) -> Result<(Piece, Results<'a>), Error> {
    let (xid, results) = split_reply(record)?;
    let piece = in_flight.remove(&xid).ok_or(Error::Unasked { xid })?;
    Ok((piece, Results(results)))
}
