//! A simulated link: streams of bytes in virtual time, at a rate, with a delay, losses and cuts.
//!
//! Owns: the links of a world.
//! Does not own: the meaning of the bytes; the world's time.
//! Invariants: the two directions do not slow each other; all streams of a link share its rate, piece by
//! piece in the order sent. Acknowledgements are free.

mod direction;
mod line;
mod options;
mod serve;
mod stream;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::world::World;

use direction::{Cut, Direction};
use line::Line;
pub use options::{LinkError, LinkOptions};
pub use serve::serve_machine;
use stream::Stream;
pub use stream::{Closed, LinkEnd};

/// A link between two machines, for any number of streams.
pub struct Link {
    line: Arc<Line>,
    streams: Mutex<Vec<Weak<Stream>>>,
}

/// The figures of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFigures {
    /// Bytes of streams.
    pub bytes: u64,
    /// Packets that were lost and sent again.
    pub lost_packets: u64,
}

impl Link {
    /// A link in `world`. `number` identifies it in the trace.
    pub fn new(world: &World, number: u64, options: LinkOptions) -> Self {
        let shared = Arc::clone(world.shared());
        let directions = Mutex::new([0; 2].map(|_| Direction::new(shared.fork_random())));
        Self { line: Arc::new(Line { shared, number, options, directions }), streams: Mutex::default() }
    }

    /// The options of the link.
    pub fn options(&self) -> &LinkOptions {
        &self.line.options
    }

    /// A new stream, open at once: its near and its far end.
    pub fn connect(&self) -> (LinkEnd, LinkEnd) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        let stream = Stream::new(Arc::clone(&self.line), streams.len() as u64);
        streams.push(Arc::downgrade(&stream));
        stream.ends()
    }

    /// From `from_ns` until `until_ns` ([`u64::MAX`]: for ever) nothing arrives in either direction. Bytes in transit
    /// are sent again one retransmission delay after the cut.
    pub fn cut(&self, from_ns: u64, until_ns: u64) {
        if until_ns <= from_ns {
            return;
        }
        let cut = Cut { from_ns, until_ns };
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for towards in 0..2 {
            let late_ns = self.line.lock()[towards].cut(cut, &self.line.options);
            let late_ns = if until_ns == u64::MAX { u64::MAX } else { late_ns };
            for stream in streams.iter().filter_map(Weak::upgrade) {
                stream.delay(towards, from_ns, late_ns);
            }
        }
    }

    /// The figures of the bytes sent from the near ends, and from the far ends.
    pub fn figures(&self) -> (LinkFigures, LinkFigures) {
        let directions = self.line.lock();
        let of = |direction: &Direction| LinkFigures { bytes: direction.bytes, lost_packets: direction.lost_packets };
        (of(&directions[1]), of(&directions[0]))
    }
}

#[cfg(test)]
mod tests;
