//! Builds disks from a model's numbers.
//!
//! Owns: the translation of keys into the parameters of queues, devices and layouts.
//! Does not own: the numbers and their checking (`parse`).
//! Invariants: every key of a kind is used here.

use super::keys::Kind;
use super::parse::Model;
use crate::disk::timing::{
    CardParameters, ChannelParameters, DeviceSet, MechanismParameters, QueueParameters, RotatingParameters,
    SetParameters, ShingleParameters, StoreParameters, ThrottleParameters, Timing,
};
use crate::disk::{Allocation, DiskOptions, Layout};

const MINUTE_NS: u64 = 60_000_000_000;

impl Model {
    /// The disk's options: the limits that the engine sees, and the space.
    pub fn options(&self) -> DiskOptions {
        let volatile_cache = match self.kind {
            Kind::Rotating => self.get("write_cache_bytes") > 0,
            Kind::Flash | Kind::Throttled => self.get("volatile") == 1,
            Kind::Card | Kind::Store => false,
        };
        DiskOptions {
            block_bytes: self.get("block_bytes") as u32,
            request_bytes_max: self.get("request_bytes_max") as u32,
            depth: self.get("nr_requests") as u32,
            volatile_cache,
            volatile_bytes_max: self.volatile_bytes_max(),
            capacity_bytes: self.capacity_bytes(),
            longer_alone: self.kind == Kind::Throttled && self.get("longer_alone") == 1,
            ..DiskOptions::default()
        }
    }

    /// The size of the volatile cache of all disks together, where it is known.
    fn volatile_bytes_max(&self) -> u64 {
        match self.kind {
            Kind::Rotating => self.get("write_cache_bytes").saturating_mul(self.disks()),
            Kind::Flash => self.get("memory_bytes"),
            Kind::Throttled | Kind::Card | Kind::Store => u64::MAX,
        }
    }

    /// Space for files on all disks together.
    pub fn capacity_bytes(&self) -> u64 {
        self.get("capacity_bytes").saturating_mul(self.disks())
    }

    fn disks(&self) -> u64 {
        if self.kind == Kind::Rotating { self.get("disks") } else { 1 }
    }

    pub(crate) fn layout(&self) -> Layout {
        let allocation = if self.allocate_at_submission {
            Allocation::AtSubmission
        } else {
            Allocation::Delayed { chunk_bytes: self.get("allocation_chunk_bytes") }
        };
        Layout::new(allocation, self.capacity_bytes())
    }

    pub(crate) fn timing(&self) -> Timing {
        let queue = QueueParameters {
            deadline: self.deadline,
            command_bytes_max: self.get("request_bytes_max"),
            read_expire_ns: self.get("read_expire_ns"),
            write_expire_ns: self.get("write_expire_ns"),
            batch_commands: self.get("batch_commands"),
            writes_starved: self.get("writes_starved"),
        };
        let stripe_bytes = if self.kind == Kind::Rotating { self.get("stripe_bytes") } else { u64::MAX };
        let (device_depth, mechanism) = (self.get("device_depth"), self.mechanism());
        let set = SetParameters { devices: self.disks(), stripe_bytes, queue, mechanism, device_depth };
        Timing::Set(Box::new(DeviceSet::new(set)))
    }

    fn mechanism(&self) -> MechanismParameters {
        match self.kind {
            Kind::Rotating => MechanismParameters::Rotating(self.rotating()),
            Kind::Card => MechanismParameters::Card(CardParameters {
                erase_block_bytes: self.get("erase_block_bytes"),
                open_blocks: self.get("open_blocks"),
                page_bytes: self.get("page_bytes"),
                read_bytes_per_second: self.get("read_bytes_per_second"),
                write_bytes_per_second: self.get("write_bytes_per_second"),
                copy_bytes_per_second: self.get("copy_bytes_per_second"),
                erase_ns: self.get("erase_ns"),
                command_ns: self.get("command_ns"),
            }),
            Kind::Flash => MechanismParameters::Channels(ChannelParameters {
                dies: self.get("dies"),
                page_bytes: self.get("page_bytes"),
                pages_per_block: self.get("pages_per_block"),
                read_ns: self.get("read_ns"),
                program_ns: self.get("program_ns"),
                erase_ns: self.get("erase_ns"),
                copies_per_mille: self.get("copies_per_mille"),
                fresh_bytes: self.get("fresh_bytes"),
                interface_bytes_per_second: self.get("interface_bytes_per_second"),
                command_ns: self.get("command_ns"),
                memory_bytes: self.get("memory_bytes"),
                flush_ns: self.get("flush_ns"),
            }),
            Kind::Store => MechanismParameters::Store(StoreParameters {
                read_latency_ns: self.get("read_latency_ns"),
                write_latency_ns: self.get("write_latency_ns"),
                spread_per_mille: self.get("latency_spread_per_mille"),
                tail_per_mille: self.get("tail_per_mille"),
                connection_bytes_per_second: self.get("connection_bytes_per_second"),
                link_bytes_per_second: self.get("link_bytes_per_second"),
            }),
            Kind::Throttled => MechanismParameters::Throttled(ThrottleParameters {
                read_bytes_per_second: self.get("read_bytes_per_second"),
                write_bytes_per_second: self.get("write_bytes_per_second"),
                tick_ns: self.get("tick_ns"),
                slice_ns: self.get("slice_ns"),
                latency_ns: self.get("latency_ns"),
                below_bytes_per_second: self.get("below_bytes_per_second"),
                flush_ns: self.get("flush_ns"),
                journal_bytes: self.get("journal_bytes"),
                commit_bytes: self.get("commit_bytes"),
            }),
        }
    }

    fn rotating(&self) -> RotatingParameters {
        let cache_bytes = self.get("shingle_cache_bytes");
        let shingles = (cache_bytes > 0).then(|| ShingleParameters {
            cache_bytes,
            cleaning_factor: self.get("shingle_cleaning_factor"),
            idle_ns: self.get("shingle_idle_ns"),
        });
        RotatingParameters {
            capacity_bytes: self.get("capacity_bytes"),
            rotation_ns: MINUTE_NS / self.get("rotations_per_minute"),
            heads: self.get("heads"),
            zones: self.zones.clone(),
            seek_settle_ns: self.get("seek_settle_ns"),
            seek_sqrt_ns: self.get("seek_sqrt_ns"),
            seek_linear_from: self.get("seek_linear_from_cylinders"),
            seek_linear_ns: self.get("seek_linear_ns"),
            command_ns: self.get("command_ns"),
            interface_bytes_per_second: self.get("interface_bytes_per_second"),
            lookahead_bytes: self.get("lookahead_bytes"),
            write_cache_bytes: self.get("write_cache_bytes"),
            flush_ns: self.get("flush_ns"),
            queued: self.get("device_depth") > 1,
            shingles,
        }
    }
}
