//! Files as an archiver writes them: bytes, times, mode, and then a COMMIT.

use std::sync::Arc;

use afflux_engine::settings::Settings;
use afflux_engine::{Engine, Platform};
use afflux_frames::Frames;
use afflux_object::{ObjectDevice, ObjectTree, ObjectTreeOptions};
use afflux_simulator::{ObjectContents, SimPlatform};
use afflux_volume::{
    AttributeChange, CreateHow, Directory, HandleKey, Inode, NewDevice, ReadBytes, SetTime, Timestamp, Volume,
};

use crate::fixture::{KIB, MIB, MILLISECOND, Machine, MachineOptions, SECOND};

type Files = Volume<SimPlatform>;
type Object = Arc<Inode<SimPlatform>>;

const OLD: Timestamp = Timestamp { seconds: 1_000_000_000, nanos: 5 };

/// A volume with names over the machine's store.
fn serve(machine: &Machine) -> Arc<Files> {
    let here = &machine.here;
    let options = ObjectTreeOptions::default();
    let tree = machine.run(ObjectTree::open(Arc::clone(&here.volume), options)).unwrap();
    machine.world.spawn("reap", tree.reaper());
    let settings = Settings::with([&afflux_volume::KNOBS]);
    let engine = Engine::new(Arc::clone(&here.platform), settings, Frames::new(32 * MIB as u64).unwrap());
    let device = ObjectDevice::new(&here.platform, Arc::clone(&here.volume));
    let factory = Box::new(move |_, _: &_| Ok(NewDevice::unknown("store".to_owned(), Arc::clone(&device) as _)));
    Volume::new(engine, tree as Arc<dyn Directory>, HandleKey::new([7; 16]), factory).unwrap()
}

async fn make(volume: &Files, name: &str, bytes: usize) -> Object {
    let root = volume.mount(b"/").await.unwrap();
    let how = CreateHow::Guarded(AttributeChange { mode: Some(0o600), ..AttributeChange::default() });
    let (file, _) = volume.create(&root, name.as_bytes(), how).await.result.unwrap();
    volume.write(&file, 0, vec![7; bytes].into()).await.result.unwrap();
    file
}

fn times() -> AttributeChange {
    AttributeChange { mtime: SetTime::To(OLD), ..AttributeChange::default() }
}

fn mode(mode: u32) -> AttributeChange {
    AttributeChange { mode: Some(mode), ..AttributeChange::default() }
}

async fn set(volume: &Files, file: &Object, change: AttributeChange) {
    volume.set_attributes(file, change, None).await.result.unwrap();
}

/// PUTs of a part of a run.
async fn puts<T>(machine: &Machine, part: impl Future<Output = T>) -> (u64, T) {
    let puts = || machine.here.store.figures().puts + machine.here.store.figures().log_puts;
    let before = puts();
    let result = part.await;
    (puts() - before, result)
}

/// A second machine sees the file as it was reported to the first one.
fn is_there(contents: &ObjectContents, name: &str, bytes: usize, mode: u32) {
    let machine = Machine::new(contents, MachineOptions { seed: 2, ..MachineOptions::default() });
    let volume = serve(&machine);
    machine.run(async {
        let root = volume.mount(b"/").await.unwrap();
        let (file, attributes) = volume.lookup(&root, name.as_bytes()).await.unwrap();
        assert_eq!((attributes.mtime, attributes.mode, attributes.size), (OLD, mode, bytes as u64));
        let read = match volume.read(&file, 0, bytes as u32).await.unwrap().bytes {
            ReadBytes::Pages(pages) => pages.slices().flatten().copied().collect(),
            ReadBytes::Copied(bytes) => bytes.to_vec(),
        };
        assert!(read == vec![7; bytes], "other bytes");
    });
}

// rule: A change of attributes takes few bytes of its file along, so a COMMIT that follows waits for nothing.
#[test]
fn a_change_of_attributes_takes_the_bytes_along() {
    let contents = ObjectContents::default();
    let machine = Machine::new(&contents, MachineOptions::default());
    let volume = serve(&machine);
    machine.run(async {
        let (_, file) = puts(&machine, make(&volume, "file", 4 * KIB)).await;
        assert_eq!(puts(&machine, set(&volume, &file, times())).await.0, 1);
        assert_eq!(puts(&machine, set(&volume, &file, mode(0o644))).await.0, 1);
        let begun = machine.here.now_ns();
        let (spent, committed) = puts(&machine, volume.sync(&file, 0, 0)).await;
        committed.result.unwrap();
        assert_eq!((spent, machine.here.now_ns() - begun), (0, 0));
    });
    drop((volume, machine));
    is_there(&contents, "file", 4 * KIB, 0o644);
}

// rule: A change of attributes takes few bytes of its file along, so a COMMIT that follows waits for nothing.
#[test]
fn the_bytes_are_durable_with_the_change_that_took_them() {
    let contents = ObjectContents::default();
    let machine = Machine::new(&contents, MachineOptions::default());
    let volume = serve(&machine);
    machine.run(async {
        let file = make(&volume, "file", 60 * KIB).await;
        set(&volume, &file, times()).await;
    });
    // It crashes after the answer to the change.
    drop((volume, machine));
    is_there(&contents, "file", 60 * KIB, 0o600);
}

// rule: a change of attributes that changes nothing takes no round trip once the attributes are durable
#[test]
fn a_change_after_another_has_no_put_if_all_stays() {
    let contents = ObjectContents::default();
    let machine = Machine::new(&contents, MachineOptions::default());
    let volume = serve(&machine);
    machine.run(async {
        let file = make(&volume, "file", 4 * KIB).await;
        set(&volume, &file, times()).await;
        // An archiver sets the owner, too, which it is already.
        let begun = machine.here.now_ns();
        set(&volume, &file, AttributeChange { uid: Some(0), gid: Some(0), ..AttributeChange::default() }).await;
        assert!(machine.here.now_ns() - begun < MILLISECOND);
        // The write changes the time, so the second change sets it again.
        volume.write(&file, 0, vec![7; 4 * KIB].into()).await.result.unwrap();
        set(&volume, &file, times()).await;
    });
    drop((volume, machine));
    is_there(&contents, "file", 4 * KIB, 0o600);
}

#[test]
fn a_change_of_attributes_waits_for_no_large_file() {
    let contents = ObjectContents::default();
    let machine = Machine::new(&contents, MachineOptions::default());
    let volume = serve(&machine);
    machine.run(async {
        let file = make(&volume, "file", 2 * MIB).await;
        let begun = machine.here.now_ns();
        set(&volume, &file, times()).await;
        assert!(machine.here.now_ns() - begun <= 40 * MILLISECOND);
    });
}

/// Many clients change attributes of the same file, write and commit it at the same time. Nobody waits for ever.
#[test]
fn changes_and_syncs_of_one_file_do_not_wait_for_each_other_in_a_circle() {
    let contents = ObjectContents::default();
    let machine = Machine::new(&contents, MachineOptions::default());
    let volume = serve(&machine);
    let file = machine.run(make(&volume, "file", 4 * KIB));
    for client in 0..8_u64 {
        let (volume, file, here) = (Arc::clone(&volume), Arc::clone(&file), Arc::clone(&machine.here));
        machine.world.spawn("client", async move {
            for round in 0..20 {
                here.sleep((client * 7 + round * 13) % 40 * MILLISECOND).await;
                match (client + round) % 5 {
                    0 => set(&volume, &file, times()).await,
                    // Privileges: earlier bytes are written before they are set.
                    1 => set(&volume, &file, mode(0o4755)).await,
                    2 => set(&volume, &file, mode(0o600 + (round % 8) as u32)).await,
                    3 => volume.sync(&file, 0, 0).await.result.unwrap(),
                    _ => set(&volume, &file, AttributeChange { size: Some(8_000), ..times() }).await,
                }
                volume.write(&file, round * 100, vec![7; 100].into()).await.result.unwrap();
            }
        });
    }
    machine.run(async {
        let platform = &machine.here.platform;
        platform.sleep_until(platform.now().after(60 * SECOND)).await;
        // All clients have ended: the file has one owner in this test, and one in the table.
        assert_eq!(Arc::strong_count(&volume), 1);
        volume.sync(&file, 0, 0).await.result.unwrap();
    });
}

// A volume in a store has no access control lists, so nothing stands in for the umask.
#[test]
fn a_umask_takes_its_bits_from_each_new_object() {
    let contents = ObjectContents::default();
    let machine = Machine::new(&contents, MachineOptions::default());
    let volume = serve(&machine);
    machine.run(async {
        let root = volume.mount(b"/").await.unwrap();
        let wanted = AttributeChange { mode: Some(0o777), umask: 0o027, ..AttributeChange::default() };
        let exclusive = CreateHow::Exclusive { verifier: [3; 8], attributes: wanted };
        let (guarded, _) = volume.create(&root, b"guarded", CreateHow::Guarded(wanted)).await.result.unwrap();
        let (exclusive, _) = volume.create(&root, b"exclusive", exclusive).await.result.unwrap();
        let (directory, _) = volume.make_directory(&root, b"directory", wanted).await.result.unwrap();
        for object in [&guarded, &exclusive, &directory] {
            assert_eq!(volume.attributes(object).await.unwrap().mode, 0o750);
        }
    });
}
