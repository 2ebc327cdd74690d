//! Whole files, with many calls in flight.
//!
//! Owns: splitting a file into calls, and the window of calls in flight.
//! Does not own: single calls (`procedures`).
//! Invariants: at most `window` calls are in flight; data arrives at its offset in any order of replies. A write is
//! done only when its COMMIT has the verifier of every WRITE.

use std::collections::HashMap;
use std::io;

use crate::connection::{Client, Error, NFS, Reply};
use crate::procedures::{check_status, read_arguments, read_results, write_arguments, write_results};
use crate::results::{ReadData, Stability, Written};
use crate::wire::Results;

const READ: u32 = 6;
const WRITE: u32 = 7;

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
        if verifiers.iter().any(|verifier| *verifier != committed.verifier) {
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
    ) -> Result<Vec<[u8; 8]>, Error> {
        let mut sent = 0;
        let mut in_flight: HashMap<u32, Piece> = HashMap::new();
        let mut verifiers: Vec<[u8; 8]> = Vec::new();
        while sent < data.len() || !in_flight.is_empty() {
            while sent < data.len() && in_flight.len() < window.max(1) {
                let len = block.max(1).min(data.len() - sent);
                let at = offset + sent as u64;
                let arguments = write_arguments(file, at, &data[sent..sent + len], Stability::Unstable);
                let xid = self.send(NFS, WRITE, &arguments.0)?;
                in_flight.insert(xid, Piece { offset: at, len: len as u32 });
                sent += len;
            }
            let (piece, written) = self.receive_written(&mut in_flight)?;
            if written.count != piece.len {
                let text = format!("{} of {} bytes written at {}", written.count, piece.len, piece.offset);
                return Err(io::Error::other(text).into());
            }
            if !verifiers.contains(&written.verifier) {
                verifiers.push(written.verifier);
            }
        }
        Ok(verifiers)
    }

    fn receive_written(&mut self, in_flight: &mut HashMap<u32, Piece>) -> Result<(Piece, Written), Error> {
        let (piece, reply) = self.receive_piece(in_flight)?;
        let mut results = Results(&reply.results);
        self.check_piece("WRITE", &mut results, in_flight)?;
        Ok((piece, write_results(&mut results)?))
    }

    fn receive_piece(&mut self, in_flight: &mut HashMap<u32, Piece>) -> Result<(Piece, Reply), Error> {
        let reply = self.receive()?;
        let piece = in_flight.remove(&reply.xid).ok_or(Error::Unasked { xid: reply.xid })?;
        Ok((piece, reply))
    }

    /// Reads a piece's status. A refusal ends the transfer, so the replies to its other pieces are taken: the next call must
    /// not meet them.
    fn check_piece(
        &mut self,
        procedure: &'static str,
        results: &mut Results<'_>,
        in_flight: &mut HashMap<u32, Piece>,
    ) -> Result<(), Error> {
        let checked = check_status(procedure, results);
        while checked.is_err() && !in_flight.is_empty() {
            self.receive_piece(in_flight)?;
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
        let mut end = len;
        let mut asked = 0;
        let mut in_flight: HashMap<u32, Piece> = HashMap::new();
        while asked < end || !in_flight.is_empty() {
            while asked < end && in_flight.len() < window.max(1) {
                let count = block.max(1).min(end - asked);
                let piece = Piece { offset: offset + asked as u64, len: count as u32 };
                self.ask(file, piece, &mut in_flight)?;
                asked += count;
            }
            let (piece, read) = self.receive_read(&mut in_flight)?;
            let at = (piece.offset - offset) as usize;
            let got = read.data.len();
            if got > piece.len as usize {
                return Err(io::Error::other("more bytes than asked for").into());
            }
            data[at..at + got].copy_from_slice(&read.data);
            if read.end_of_file {
                end = end.min(at + got);
            } else if got == 0 {
                return Err(io::Error::other("no bytes, and not the end of the file").into());
            } else if got < piece.len as usize {
                let rest = Piece { offset: piece.offset + got as u64, len: piece.len - got as u32 };
                self.ask(file, rest, &mut in_flight)?;
            }
        }
        data.truncate(end);
        Ok(data)
    }

    fn ask(&mut self, file: &[u8], piece: Piece, in_flight: &mut HashMap<u32, Piece>) -> Result<(), Error> {
        let xid = self.send(NFS, READ, &read_arguments(file, piece.offset, piece.len).0)?;
        in_flight.insert(xid, piece);
        Ok(())
    }

    fn receive_read(&mut self, in_flight: &mut HashMap<u32, Piece>) -> Result<(Piece, ReadData), Error> {
        let (piece, reply) = self.receive_piece(in_flight)?;
        let mut results = Results(&reply.results);
        self.check_piece("READ", &mut results, in_flight)?;
        Ok((piece, read_results(&mut results)?))
    }
}
