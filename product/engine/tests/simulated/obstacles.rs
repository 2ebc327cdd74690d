//! Why a file's bytes are not written, as reported to people.

//! rule: a file whose dirty bytes stay says why
//! kept in: `product/engine/src/devices/file.rs`

use std::sync::Arc;

use afflux_engine::{DeviceError, WriteObstacle};
use afflux_simulator::{
    DiskOptions, Fault, FaultTarget, FaultWhat, Memory, OWN_POLICY, Setup, SimMachine, World, WorldOptions,
};

use crate::fixture::{EngineFixture, PAGE, SECOND};

const IO: DeviceError = DeviceError::Io { errno: 5 };

fn lab() -> EngineFixture {
    let world = World::new(WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(1) });
    let setup = Setup::of(OWN_POLICY).unwrap();
    let machine = SimMachine::with_disks(&world, Memory::Whole(16 << 20), setup, &[DiskOptions::default()]).unwrap();
    EngineFixture::of(world, machine)
}

#[test]
fn each_obstacle_of_a_file_is_named() {
    let lab = lab();
    let [failed, withheld, free] = [(); 3].map(|()| lab.file(0, 8 * PAGE, 1));
    failed.disk.add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).on(failed.id));
    let held = lab.run(async {
        for file in [&failed, &withheld, &free] {
            lab.here.write(file, 0, PAGE, 2).await.unwrap();
            assert_eq!(file.file.write_obstacle(), None, "it waits for its turn");
        }
        lab.here.engine.withhold(&withheld.file, 0..PAGE as u64).await.unwrap()
    });
    let are_told = || {
        let obstacles = [&failed, &withheld, &free].map(|file| file.file.write_obstacle());
        obstacles == [Some(WriteObstacle::Failed(IO)), Some(WriteObstacle::Withheld), None]
    };
    assert!(lab.run(lab.here.until(100 * SECOND, are_told)));
    lab.here.disks[0].hang();
    lab.run(lab.here.write(&free, 0, PAGE, 3)).unwrap();
    let is_told = || free.file.write_obstacle() == Some(WriteObstacle::Hung);
    assert!(lab.run(lab.here.until(100 * SECOND, is_told)));
    drop(held);
}

/// The change waits for a write that the disk does not end.
#[test]
fn a_change_of_size_under_way_is_an_obstacle() {
    let lab = lab();
    let file = lab.file(0, 8 * PAGE, 1);
    lab.run(lab.here.write(&file, 0, PAGE, 2)).unwrap();
    file.disk.add_fault(Fault::always(FaultTarget::Layout, FaultWhat::Hang).on(file.id));
    let (here, own) = (Arc::clone(&lab.here), file.clone());
    lab.in_background(async move { here.engine.set_size(&own.file, 4 * PAGE as u64).await.unwrap() });
    let is_told = || file.file.write_obstacle() == Some(WriteObstacle::Held);
    assert!(lab.run(lab.here.until(SECOND, is_told)));
}

#[test]
fn a_file_without_a_place_says_so() {
    let lab = EngineFixture::new(1, 4096, &[DiskOptions::default()], &["reserve_below_bytes=64MiB"]);
    let file = lab.file(0, 0, 0);
    lab.run(async {
        lab.here.write(&file, 0, 10 * PAGE, 2).await.unwrap();
        lab.here.disks[0].set_capacity(4 * PAGE as u64);
        assert!(lab.here.write(&file, 10 * PAGE as u64, PAGE, 2).await.is_err());
    });
    assert_eq!(file.file.write_obstacle(), Some(WriteObstacle::Unplaced));
}
