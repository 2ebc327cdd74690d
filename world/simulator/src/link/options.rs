//! Options of a link, and their notation.
//!
//! A link is `rate=100Mbit,delay=0.1ms`, and other keys where they differ from the defaults. Numbers may have decimals;
//! they are parsed without rounding or refused.
//!
//! Owns: the keys, their units, ranges and defaults.
//! Does not own: their effect on bytes (`direction`, `stream`).
//! Invariants: options are within their ranges.

use crate::document::with_unit;

/// Options of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// Bits per second in each direction, including the packets' overhead.
    pub bits_per_second: u64,
    /// Time of a bit from one end to the other, in nanoseconds.
    pub delay_ns: u64,
    /// Bytes of the stream in one packet.
    pub packet_bytes: u32,
    /// Additional bytes of each packet on the wire.
    pub overhead_bytes: u32,
    /// Lost packets in a million. Each is sent again.
    pub loss_per_million: u32,
    /// Delay of a lost packet and of everything behind it in its stream, in nanoseconds.
    pub retransmit_ns: u64,
    /// Most bytes of one stream, in one direction, between its two users: in the sender's buffer, in transit, or
    /// waiting to be received. A single piece may be larger.
    pub window_bytes: u64,
}

/// Overhead of TCP over Ethernet. A packet of 1,500 bytes has 20 of IPv4 and 32 of TCP with time stamps. The frame adds
/// 14 of header, 4 of checksum, 8 of preamble and 12 of gap (RFC 791, RFC 9293, RFC 7323, IEEE 802.3). So 1,448 of
/// 1,538 bytes are the stream's: 94.1 %.
const PACKET_BYTES: u32 = 1_448;
const OVERHEAD_BYTES: u32 = 90;
const _: () = assert!(PACKET_BYTES + 20 + 32 == 1_500 && PACKET_BYTES + OVERHEAD_BYTES == 1_538);

impl Default for LinkOptions {
    /// 100 Mbit/s of Ethernet with 0.1 ms of delay in each direction, TCP packets, no loss, a window of 4 MiB.
    fn default() -> Self {
        Self {
            bits_per_second: 100_000_000,
            delay_ns: 100_000,
            packet_bytes: PACKET_BYTES,
            overhead_bytes: OVERHEAD_BYTES,
            loss_per_million: 0,
            // Linux: TCP_RTO_MIN.
            retransmit_ns: 200_000_000,
            window_bytes: 4 << 20,
        }
    }
}

/// The reason that a description is not a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The key does not exist.
    #[error(
        "link: there is no {key:?}; the keys are rate, delay, packet, overhead, loss, retransmit and window, as in \
         rate=100Mbit,delay=0.1ms"
    )]
    Key {
        /// The key as written.
        key: String,
    },
    /// Not `key=value`.
    #[error("link: {text:?} is not KEY=VALUE, as in rate=100Mbit,delay=0.1ms")]
    Form {
        /// The text as written.
        text: String,
    },
    /// A key occurs twice.
    #[error("link: {key} is there twice")]
    Twice {
        /// The key.
        key: &'static str,
    },
    /// Not a number with a unit of the key's, or out of range.
    #[error("link: {key}={value}: it takes {allowed}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value as written.
        value: String,
        /// Range and units.
        allowed: &'static str,
    },
}

/// A unit, and its size in the smallest unit.
type Unit = (&'static str, u64);

struct Key {
    name: &'static str,
    units: &'static [Unit],
    range: (u64, u64),
    allowed: &'static str,
    set: fn(&mut LinkOptions, u64),
}

const BITS: &[Unit] = &[("Gbit", 1_000_000_000), ("Mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];
const TIMES: &[Unit] = &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const PACKET: &[Unit] = &[("", 1)];
const BYTES: &[Unit] = &[
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("", 1),
];
const PARTS: &[Unit] = &[("%", 10_000), ("ppm", 1)];

const KEYS: &[Key] = &[
    Key {
        name: "rate",
        units: BITS,
        range: (1_000, 1_000_000_000_000),
        allowed: "1 kbit to 1000 Gbit a second, in bit, kbit, Mbit or Gbit",
        set: |link, value| link.bits_per_second = value,
    },
    Key {
        name: "delay",
        units: TIMES,
        range: (0, 60_000_000_000),
        allowed: "0ns to 60s, one way, in ns, us, ms or s",
        set: |link, value| link.delay_ns = value,
    },
    Key {
        name: "packet",
        units: PACKET,
        range: (1, 1 << 20),
        allowed: "1 to 1048576 bytes of payload, without a unit",
        set: |link, value| link.packet_bytes = value as u32,
    },
    Key {
        name: "overhead",
        units: PACKET,
        range: (0, 1 << 16),
        allowed: "0 to 65536 bytes a packet, without a unit",
        set: |link, value| link.overhead_bytes = value as u32,
    },
    Key {
        name: "loss",
        units: PARTS,
        range: (0, 500_000),
        allowed: "0% to 50% of the packets, in % or ppm",
        set: |link, value| link.loss_per_million = value as u32,
    },
    Key {
        name: "retransmit",
        units: TIMES,
        range: (0, 60_000_000_000),
        allowed: "0ns to 60s, in ns, us, ms or s",
        set: |link, value| link.retransmit_ns = value,
    },
    Key {
        name: "window",
        units: BYTES,
        range: (1, 1 << 32),
        allowed: "1 byte to 4GiB, in kB, MB, GB, KiB, MiB or GiB",
        set: |link, value| link.window_bytes = value,
    },
];

impl LinkOptions {
    /// Parses `rate=100Mbit,delay=0.1ms,loss=0.1%`, in any order; missing keys have their defaults.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        let mut options = Self::default();
        let mut seen = [false; KEYS.len()];
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| LinkError::Form { text: part.to_owned() })?;
            let (name, value) = (name.trim(), value.trim());
            let at = KEYS.iter().position(|key| key.name == name);
            let at = at.ok_or_else(|| LinkError::Key { key: name.to_owned() })?;
            let key = &KEYS[at];
            if std::mem::replace(&mut seen[at], true) {
                return Err(LinkError::Twice { key: key.name });
            }
            let read = with_unit(value, key.units).filter(|value| (key.range.0..=key.range.1).contains(value));
            let wrong = || LinkError::Value { key: key.name, value: value.to_owned(), allowed: key.allowed };
            (key.set)(&mut options, read.ok_or_else(wrong)?);
        }
        Ok(options)
    }

    /// Bytes per second of a stream that never pauses.
    pub fn stream_bytes_per_second(&self) -> u64 {
        let packet = u128::from(self.packet_bytes);
        let wire = packet + u128::from(self.overhead_bytes);
        (u128::from(self.bits_per_second) * packet / wire / 8) as u64
    }
}

#[cfg(test)]
mod tests;
