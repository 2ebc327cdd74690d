//! The least that a server of cold READs does: `bare_reads FILE` prints a port of 127.0.0.1 and serves one connection.
//!
//! One thread has one ring. It receives NFS READ calls, reads their blocks past the host's page cache, and sends the
//! replies. It has no cache, no permissions, no other procedure, and no attributes in its replies. Calls are for
//! aligned blocks of 4 KiB, at most 64 in flight. So its rate is a bound for servers.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a measured program")]

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types::Fd};

const BLOCK: usize = 4096;
const SLOTS: usize = 64;
const RECEIVE: u64 = u64::MAX;
const SEND: u64 = u64::MAX - 1;
/// Record mark, xid, five words of an accepted reply, status, no attributes, count, end of file, length.
const HEADER_BYTES: usize = 48;
const O_DIRECT: i32 = 0x4000;

#[derive(Clone, Copy)]
#[repr(align(4096))]
struct Block([u8; BLOCK]);

/// The vectors of a message, as the kernel reads them.
#[derive(Clone, Copy)]
#[repr(C)]
struct IoVec(*const u8, usize);

struct Server {
    file: i32,
    socket: i32,
    input: Vec<u8>,
    filled: usize,
    headers: [[u8; HEADER_BYTES]; SLOTS],
    blocks: Vec<Block>,
    free: Vec<usize>,
    /// Slots that were read, and those that are being sent.
    read: VecDeque<usize>,
    sending: Vec<usize>,
    vectors: [IoVec; 2 * SLOTS],
    /// Bytes of the message that were not sent yet.
    left: usize,
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

impl Server {
    fn receive(&mut self) -> Entry {
        let (start, len) = (self.input[self.filled..].as_mut_ptr(), self.input.len() - self.filled);
        opcode::Recv::new(Fd(self.socket), start, len as u32).build().user_data(RECEIVE)
    }

    /// Takes the complete calls out of the input; returns their reads.
    fn calls(&mut self) -> Vec<Entry> {
        let (mut at, mut reads) = (0, Vec::new());
        while self.filled - at >= 4 {
            let len = word(&self.input, at) & 0x7fff_ffff;
            if self.filled - at < 4 + len {
                break;
            }
            let call = &self.input[at + 4..at + 4 + len];
            // Two opaque values with their kinds: who calls, and the verifier of that.
            let mut args = 24;
            for _ in 0..2 {
                args += 8 + word(call, args + 4).next_multiple_of(4);
            }
            args += 4 + word(call, args).next_multiple_of(4);
            let offset = u64::from_be_bytes(call[args..args + 8].try_into().unwrap());
            let slot = self.free.pop().expect("at most 64 calls in flight");
            let words = [(HEADER_BYTES + BLOCK - 4) as u32 | 1 << 31, word(call, 0) as u32, 1, 0, 0, 0, 0, 0, 0, 0, 0];
            let header = &mut self.headers[slot];
            words.iter().zip(header.chunks_exact_mut(4)).for_each(|(word, to)| to.copy_from_slice(&word.to_be_bytes()));
            let read = opcode::Read::new(Fd(self.file), self.blocks[slot].0.as_mut_ptr(), BLOCK as u32);
            reads.push(read.offset(offset).build().user_data(slot as u64));
            at += 4 + len;
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        reads
    }

    /// Sends all blocks that were read, unless a message is under way.
    fn send(&mut self) -> Option<Entry> {
        if self.left == 0 && !self.read.is_empty() {
            self.sending.extend(self.read.drain(..));
            for (at, slot) in self.sending.iter().enumerate() {
                self.vectors[2 * at] = IoVec(self.headers[*slot].as_ptr(), HEADER_BYTES);
                self.vectors[2 * at + 1] = IoVec(self.blocks[*slot].0.as_ptr(), BLOCK);
            }
            self.left = self.sending.len() * (HEADER_BYTES + BLOCK);
            return Some(self.rest());
        }
        None
    }

    /// Sends the rest of the message.
    fn rest(&mut self) -> Entry {
        let mut sent = self.sending.len() * (HEADER_BYTES + BLOCK) - self.left;
        let whole = 2 * (sent / (HEADER_BYTES + BLOCK));
        sent %= HEADER_BYTES + BLOCK;
        let first = whole + usize::from(sent >= HEADER_BYTES);
        if sent > 0 {
            let part = if sent >= HEADER_BYTES { sent - HEADER_BYTES } else { sent };
            let slot = self.sending[whole / 2];
            self.vectors[first] = match first % 2 {
                0 => IoVec(self.headers[slot][part..].as_ptr(), HEADER_BYTES - part),
                _ => IoVec(self.blocks[slot].0[part..].as_ptr(), BLOCK - part),
            };
        }
        let (start, count) = (self.vectors[first..].as_ptr(), 2 * self.sending.len() - first);
        opcode::Writev::new(Fd(self.socket), start.cast(), count as u32).build().user_data(SEND)
    }

    /// Takes the end of an operation; returns the operations that follow. None once the client has gone.
    fn ended(&mut self, token: u64, result: i32) -> Option<Vec<Entry>> {
        assert!(result >= 0, "operation {token}: error {}", -result);
        match token {
            RECEIVE if result == 0 => return None,
            RECEIVE => {
                self.filled += result as usize;
                let mut next = self.calls();
                next.push(self.receive());
                return Some(next);
            }
            SEND => {
                self.left -= result as usize;
                if self.left > 0 {
                    return Some(vec![self.rest()]);
                }
                self.free.append(&mut self.sending);
            }
            slot => {
                assert_eq!(result as usize, BLOCK, "a block of the file");
                self.read.push_back(slot as usize);
            }
        }
        Some(Vec::new())
    }
}

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let file = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(path).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    std::io::stdout().flush().unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nodelay(true).unwrap();
    let mut server = Server {
        file: file.as_raw_fd(),
        socket: socket.as_raw_fd(),
        input: vec![0; 64 << 10],
        filled: 0,
        headers: [[0; HEADER_BYTES]; SLOTS],
        blocks: vec![Block([0; BLOCK]); SLOTS],
        free: (0..SLOTS).collect(),
        read: VecDeque::new(),
        sending: Vec::new(),
        vectors: [IoVec(std::ptr::null(), 0); 2 * SLOTS],
        left: 0,
    };
    let mut builder = IoUring::builder();
    builder.setup_coop_taskrun().setup_taskrun_flag();
    let mut ring: IoUring = builder.build(2 * SLOTS as u32 + 2).unwrap();
    let mut next = vec![server.receive()];
    loop {
        for entry in next.drain(..) {
            // SAFETY: the memory of each operation is the server's, which lives longer than the ring, and nothing
            // changes it before the operation ends.
            unsafe { ring.submission().push(&entry) }.expect("there is room for each slot, a receive and a send");
        }
        ring.submit_and_wait(1).unwrap();
        let ended: Vec<(u64, i32)> = ring.completion().map(|entry| (entry.user_data(), entry.result())).collect();
        for (token, result) in ended {
            match server.ended(token, result) {
                Some(more) => next.extend(more),
                None => return,
            }
        }
        next.extend(server.send());
    }
}
