//! A trace under the whole engine on a simulated SSD: the bytes that it reads.
//!
//! Owns: the machine, its files, the calls in order. Does not own: the engine, the disk's model.
//! Invariants: one client makes each call when the one before has ended. A file has all bytes from the start that are read before they
//! are written.

use std::sync::Arc;

use afflux_engine::eviction::EvictionKind;
use afflux_engine::{Error, File};
use afflux_simulator::catalogue::{self, DeviceChoice};
use afflux_simulator::{CpuOptions, Memory, OWN_POLICY, Setup, SimMachine, World, WorldOptions};

use super::calls::{Call, PAGE_BYTES};
use crate::experiment::LabError;

const DEVICE: &str = "sata-ssd";
const SEED: u64 = 1;
/// Frames besides those for pages, one for so many pages: the index takes some.
const PAGES_A_NODE: u64 = 32;
/// Frames that an engine has besides: it reads and frees several pages at a time.
const FRAMES_MORE: u64 = 64;

/// Bytes that the device reads in all calls.
pub(super) fn bytes_read(calls: &[Call], frames: u64, kind: EvictionKind, ahead: bool) -> Result<u64, LabError> {
    let world = World::new(WorldOptions::machine(SEED, CpuOptions::count(2)));
    let mut setup = Setup::of(OWN_POLICY).map_err(LabError::failed)?.with_eviction(Some(kind));
    if !ahead {
        setup = setup.with_knobs(&["readahead_bytes_max=0"]).map_err(LabError::failed)?;
    }
    let memory = Memory::Stamped((frames + frames / PAGES_A_NODE + FRAMES_MORE) * PAGE_BYTES);
    let mut machine = SimMachine::new(&world, memory, setup).map_err(LabError::failed)?;
    let choice = DeviceChoice::parse(DEVICE).map_err(LabError::failed)?;
    machine.add(DEVICE, catalogue::make(&world, 0, &choice.model(None).map_err(LabError::failed)?));
    let (engine, disk, device) = (Arc::clone(&machine.engine), Arc::clone(&machine.disks[0]), machine.devices[0]);
    let files: Vec<File> = file_bytes(calls)
        .into_iter()
        .map(|bytes| {
            let id = disk.create_file();
            disk.make_sparse(id, bytes);
            disk.lay_out(id, bytes);
            engine.open(device, disk.backing(id), bytes)
        })
        .collect();
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
