//! How much a volume has in segments, and how much of that is garbage.
//!
//! Owns: the sums over the records of segments.
//! Does not own: the sizes of objects, which the store knows; bytes in records, which are few.
//! Invariants: it reads records only, one scan for each some hundred segments.

use crate::error::ObjectVolumeError;
use crate::format::records::{COMPRESSED_RUNS, SegmentBytes, SegmentRecord, VolumeHeader};
use crate::open::get;
use crate::seams::{Durability, PagedScan, RecordDatabase};

/// The bytes of a volume's segments, as they were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeUsage {
    /// Segments with a record.
    pub segments: u64,
    /// Bytes of files in them. Files that share bytes count them once each.
    pub live_bytes: u64,
    /// Bytes that no file has. They go when their segments go.
    pub garbage_bytes: u64,
    /// The volume has, or had, compressed bytes.
    pub is_compressed: bool,
}

/// Sums up the segments of a volume, by its durable records.
///
/// # Errors
/// If there is no volume, or its records are unreadable or damaged.
pub async fn usage(records: &impl RecordDatabase) -> Result<VolumeUsage, ObjectVolumeError> {
    let header = get(records, VolumeHeader::KEY).await?.ok_or(ObjectVolumeError::NoVolume)?;
    let (_, features) = VolumeHeader::decode(&header)?;
    let mut usage = VolumeUsage { is_compressed: features & COMPRESSED_RUNS != 0, ..VolumeUsage::default() };
    let (from, end) = SegmentRecord::Live.keys();
    let mut scan = PagedScan::new(from, end, Durability::Remote);
    while let Some(found) = scan.next(records).await? {
        for (key, value) in found {
            let (_, sum) = SegmentRecord::Live.decode(&key, &value)?;
            let SegmentBytes { all, live } = SegmentBytes::of(sum);
            usage.segments += 1;
            usage.live_bytes += live;
            // Of a shared segment more may live than it has.
            usage.garbage_bytes += all.saturating_sub(live);
        }
    }
    Ok(usage)
}
