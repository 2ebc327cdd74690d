//! A trace under the whole engine on a simulated SSD: the bytes that it reads.
//!
//! Owns: its files, the calls in order. Does not own: the machine (`device_time`), the disk's model.
//! Invariants: one client makes each call when the one before has ended. A file has all bytes from the start that are
//! read before they are written.

use std::sync::Arc;

use afflux_engine::eviction::EvictionKind;
use afflux_engine::{Error, File};
use afflux_simulator::{CpuOptions, World, WorldOptions};

use super::super::device_time::machine;
use super::calls::Call;
use crate::experiment::LabError;
use crate::machine::{PAGE_BYTES, laid_out};

const DEVICE: &str = "sata-ssd";
const SEED: u64 = 1;
/// Frames besides those for pages, one for so many pages: the index takes some.
const PAGES_A_NODE: u64 = 32;
/// Frames that an engine has besides: it reads and frees several pages at a time.
const FRAMES_MORE: u64 = 64;

/// Bytes that the device reads in all calls.
pub(super) fn bytes_read(calls: &[Call], frames: u64, kind: EvictionKind, ahead: bool) -> Result<u64, LabError> {
    let world = World::new(WorldOptions::machine(SEED, CpuOptions::count(2)));
    let knobs = if ahead { &[][..] } else { &["readahead_bytes_max=0"] };
    let memory_bytes = (frames + frames / PAGES_A_NODE + FRAMES_MORE) * PAGE_BYTES;
    let machine = machine(&world, DEVICE, memory_bytes, kind, knobs)?;
    let (engine, disk, device) = (Arc::clone(&machine.engine), Arc::clone(&machine.disks[0]), machine.devices[0]);
    let files: Vec<File> = file_bytes(calls).into_iter().map(|bytes| laid_out(&engine, device, &disk, bytes)).collect();
    let calls = calls.to_vec();
    let replay = async move {
        let bytes_max = calls.iter().map(|call| call.bytes as usize).max().unwrap_or(0);
        let mut buffer = vec![0; bytes_max];
        for call in &calls {
            let file = &files[call.file as usize];
            let buffer = &mut buffer[..call.bytes as usize];
            match (call.bytes, call.writes) {
                (0, _) => engine.sync(file, 0..u64::MAX).await?,
                (_, true) => engine.write(file, call.offset, buffer).await.map(|_| ())?,
                (_, false) => engine.read(file, call.offset, buffer).await.map(|_| ())?,
            }
        }
        Ok::<(), Error>(())
    };
    world.run(replay).map_err(LabError::failed)?.map_err(LabError::failed)?;
    Ok(disk.figures().bytes.0)
}

/// The length of each file at first: as far as it is read before it is written.
fn file_bytes(calls: &[Call]) -> Vec<u64> {
    let files = calls.iter().map(|call| call.file as usize + 1).max().unwrap_or(0);
    let (mut first, mut now) = (vec![0; files], vec![0; files]);
    for call in calls {
        let (file, end) = (call.file as usize, call.offset + call.bytes);
        if !call.writes && end > now[file] {
            first[file] = end;
        }
        now[file] = end.max(now[file]);
    }
    first
}
