//! Kills of servers whose memory outlives them. The next server shows clients each byte, size and name that the earlier
//! one told them.
//!
//! Several clients work at the same time; after their last calls the server is killed, in the middle of its writeback.
//! In the next life they compare everything and go on, while the volume still brings files back.

//! rule: 12: after a kill clients find each file with the bytes, the size and the names that were acknowledged to them
//! kept in: `product/volume/src/handles/adopt.rs`

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use afflux_engine::{Nanos, Platform, Recovered};
use afflux_simulator::{
    Disk, DiskOptions, MemoryTree, Random, Setup, SimMachine, SimPlatform, TreeOptions, World, WorldOptions,
};
use afflux_volume::{AttributeChange, Caller, Held, VolumeError};
use bytes::Bytes;

use crate::client::{Client, Files};
use crate::clients::{VolumeFixture, number_from_env};
use crate::held::{create, read, write};
use crate::racing_over_kills::KeptCall;

const SEEDS: u64 = 60;
const CLIENTS: u64 = 3;
const LIVES: u64 = 4;
const OPERATIONS: u64 = 25;

fn setup() -> Setup {
    Setup::default().with_knobs(&["dirty_expire_centisecs=50"]).unwrap()
}

fn options(seed: u64) -> TreeOptions {
    // As few descriptors as possible for every other seed: inodes come and go all the time.
    let descriptors_max = if seed.is_multiple_of(2) { 0 } else { 100_000 };
    TreeOptions { descriptors_max, keeps_unnamed: true, ..TreeOptions::default() }
}

/// One life of a server, up to a kill.
pub(crate) struct Life {
    pub(crate) world: World,
    disk: Arc<Disk>,
    tree: Arc<MemoryTree>,
    pub(crate) volume: Arc<Files>,
}

impl Life {
    pub(crate) fn first(seed: u64) -> Self {
        let VolumeFixture { world, disk, tree, volume } = VolumeFixture::new(seed, options(seed));
        Self { world, disk, tree, volume }
    }

    /// The life after a kill of this one now.
    pub(crate) fn next(self, seed: u64, random: &mut Random) -> Self {
        let memory = self.volume.engine().frames().memory().copy().unwrap();
        let files = self.disk.files_after_kill(random);
        let world = World::new(WorldOptions::seed(seed));
        let disk = Disk::new(&world, 0, DiskOptions::default());
        disk.restore(files);
        let tree = self.tree.after_kill(&world, &disk, options(seed));
        let recovered = Recovered::look(memory);
        assert_eq!(recovered.quarantined(), Default::default());
        let mut machine = SimMachine::recover(&world, recovered, 1, setup());
        let volume = machine.add_tree("disk", &tree).unwrap();
        assert_eq!(volume.found_elsewhere(), 0);
        assert_eq!(volume.write_verifier(), self.volume.write_verifier());
        Self { world, disk, tree, volume }
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.run(future).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Lets the clients work at the same time. In a later life they compare first what they know.
    fn serve(&self, clients: Vec<Client>, is_first: bool) -> Vec<Client> {
        let (count, ended) = (clients.len(), Arc::new(Mutex::new(Vec::new())));
        for mut client in clients {
            client.volume = Arc::clone(&self.volume);
            let ended = Arc::clone(&ended);
            self.world.spawn("client", async move {
                if !is_first {
                    compare(&mut client).await;
                }
                for _ in 0..OPERATIONS {
                    client.step().await;
                }
                ended.lock().unwrap().push(client);
            });
        }
        let volume = Arc::clone(&self.volume);
        self.world.spawn("adopt", async move { assert_eq!(volume.adopt_found().await.failed, None) });
        self.run(async {
            let platform = self.world.platform();
            while ended.lock().unwrap().len() < count {
                platform.sleep_until(platform.now().after(Nanos::MILLISECOND)).await;
            }
        });
        std::mem::take(&mut *ended.lock().unwrap())
    }
}

async fn compare(client: &mut Client) {
    client.list().await;
    for known in client.files.values_mut() {
        // A file with unwritten bytes has a later time now.
        known.mtime = None;
    }
    for (name, known) in client.files.clone() {
        client.check(&name, &known).await;
    }
    for handle in &client.gone {
        assert_eq!(client.volume.resolve(handle).await.err(), Some(VolumeError::Stale));
    }
}

fn one_seed(seed: u64) {
    let mut random = Random::new(seed).fork(78);
    let mut life = Life::first(seed);
    let root = life.run(life.volume.mount(b"")).unwrap();
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|number| {
            let name = format!("home{number}");
            let made = life.run(life.volume.make_directory(&root, name.as_bytes(), AttributeChange::default()));
            let home = life.volume.handle(&made.result.unwrap().0).as_bytes().to_vec();
            Client::new(Arc::clone(&life.volume), home, random.fork(number))
        })
        .collect();
    drop(root);
    for number in 0..LIVES {
        clients = life.serve(clients, number == 0);
        life = life.next(seed + number, &mut random);
    }
    life.run(async {
        for client in &mut clients {
            client.volume = Arc::clone(&life.volume);
            compare(client).await;
        }
        assert_eq!(life.volume.adopt_found().await.failed, None);
        let device = life.volume.engine().status().devices[0].id;
        assert!(life.volume.engine().drain(device).await.is_empty());
        assert_eq!(life.volume.settle_all().await, 0);
        assert!(life.volume.engine().found_files().is_empty());
    });
}

#[test]
fn clients_go_on_after_kills() {
    let first = number_from_env("AFFLUX_FIRST_SEED", 1);
    for seed in first..first + number_from_env("AFFLUX_SEEDS", SEEDS) {
        eprintln!("seed {seed}");
        one_seed(seed);
    }
}

/// The successor of a killed server with one file of 5,000 unwritten bytes. It has brought nothing back yet.
fn after_kill() -> Life {
    let life = Life::first(1);
    life.run(async {
        let root = life.volume.mount(b"").await.unwrap();
        let file = create(&life.volume, &root, b"file").await;
        write(&life.volume, &file, 0, &[7; 5000]).await;
    });
    life.next(2, &mut Random::new(3))
}

#[test]
fn a_listing_brings_back_the_files_whose_attributes_it_shows() {
    let life = after_kill();
    life.run(async {
        let root = life.volume.mount(b"").await.unwrap();
        let listing = life.volume.list(&root, 0, 100, true).await.unwrap();
        let sizes: Vec<u64> = listing
            .entries
            .iter()
            .filter(|entry| entry.name == "file")
            .map(|entry| entry.object.as_ref().unwrap().1.size)
            .collect();
        assert_eq!(sizes, [5000]);
    });
}

#[test]
fn a_name_brings_its_file_back() {
    let life = after_kill();
    life.run(async {
        let root = life.volume.mount(b"").await.unwrap();
        let (file, attributes) = life.volume.lookup(&root, b"file").await.unwrap();
        assert_eq!((attributes.size, attributes.used), (5000, 8192), "no part of it looks like a hole");
        assert_eq!(read(&life.volume, &file).await, [7; 5000]);
        assert!(life.volume.engine().found_files().is_empty());
    });
}

/// The engine would have two files with one key, and the second would lack the first one's pages.
#[test]
fn a_caller_that_goes_away_brings_its_file_back_all_the_same() {
    let life = after_kill();
    life.run(async {
        let root = life.volume.mount(b"").await.unwrap();
        for steps in 1..40 {
            let mut lookup = Box::pin(life.volume.lookup(&root, b"file"));
            for _ in 0..steps {
                if poll_fn(|context| Poll::Ready(lookup.as_mut().poll(context).is_ready())).await {
                    break;
                }
                life.world.platform().preemption_point().await;
            }
        }
        let (file, _) = life.volume.lookup(&root, b"file").await.unwrap();
        assert_eq!(read(&life.volume, &file).await, [7; 5000]);
        life.volume.write(&file, 5000, Bytes::from_static(&[8; 10])).await.result.unwrap();
        life.volume.sync(&file, 0, 0).await.result.unwrap();
        let on_disk = life.disk.durable(life.tree.file_at(&["file"]).unwrap());
        assert_eq!(on_disk, [&[7; 5000][..], &[8; 10]].concat());
    });
}

#[test]
fn a_file_that_is_gone_is_forgotten_once() {
    let life = after_kill();
    life.run(async {
        let root = life.volume.mount(b"").await.unwrap();
        // The host's own unlink: nothing brings the file back before.
        life.volume.remove(&root, b"file").await.result.unwrap();
        let adopted = life.volume.adopt_found().await;
        assert_eq!((adopted.files, adopted.gone, adopted.failed), (0, 1, None));
        assert!(life.volume.engine().found_files().is_empty());
        assert_eq!(life.volume.adopt_found().await, Default::default());
    });
}

/// A held file with unwritten bytes, and the steps that lead it to no name.
struct Unnamed {
    life: Life,
    handle: Vec<u8>,
    file: Held<SimPlatform>,
}

impl Unnamed {
    fn new(seed: u64) -> Self {
        let life = Life::first(seed);
        let (handle, file) = life.run(async {
            let root = life.volume.mount(b"").await.unwrap();
            let file = create(&life.volume, &root, b"file").await;
            create(&life.volume, &root, b"other").await;
            write(&life.volume, &file, 0, &[7; 5000]).await;
            (life.volume.handle(&file).as_bytes().to_vec(), life.volume.hold(&file).unwrap())
        });
        Self { life, handle, file }
    }

    /// Takes the name away, for so many steps at most. Returns whether that has ended.
    fn unname(&self, by_rename: bool, steps: u64) -> bool {
        let volume = Arc::clone(&self.life.volume);
        let removal = async move {
            let root = volume.mount(b"").await.unwrap();
            match by_rename {
                true => volume.rename(&root, b"other", &root, b"file").await.0.result.unwrap(),
                false => volume.remove(&root, b"file").await.result.unwrap(),
            }
        };
        self.life.run(async {
            let mut removal = Box::pin(removal);
            for _ in 0..steps {
                if poll_fn(|context| Poll::Ready(removal.as_mut().poll(context).is_ready())).await {
                    return true;
                }
                self.life.world.platform().preemption_point().await;
            }
            false
        })
    }

    /// The file in the life after a kill now.
    fn killed(self, seed: u64) -> (Life, Held<SimPlatform>) {
        let life = self.life.next(seed, &mut Random::new(seed));
        let file = life.run(life.volume.hold_inherited(&self.handle)).unwrap();
        drop(self.file);
        (life, file)
    }
}

// rule: 12: an open file that loses its last name goes on after a kill at any moment, with its unwritten bytes
// kept in: `product/volume/src/handles/hold.rs`
#[test]
fn a_held_file_goes_on_without_its_name_after_a_kill_at_any_moment() {
    for by_rename in [false, true] {
        let mut has_ended = false;
        for steps in (1..).take_while(|steps| *steps < 100) {
            if has_ended {
                break;
            }
            let unnamed = Unnamed::new(steps);
            has_ended = unnamed.unname(by_rename, steps);
            let (life, file) = unnamed.killed(steps);
            life.run(async {
                assert_eq!(read(&life.volume, &file).await, [7; 5000]);
                write(&life.volume, &file, 5000, &[8; 10]).await;
                life.volume.sync(&file, 0, 0).await.result.unwrap();
                assert_eq!(life.volume.adopt_found().await, Default::default());
                let objects = life.tree.objects();
                let is_named = life.volume.attributes(&file).await.unwrap().links > 0;
                drop(file);
                assert_eq!(life.tree.objects(), objects - usize::from(!is_named), "it ends with its last holder");
            });
        }
        assert!(has_ended);
    }
}

/// Removes the name of a held directory, for so many steps at most. Returns whether the removal has ended.
fn unname_directory(life: &Life, steps: u64) -> (bool, Vec<u8>, Held<SimPlatform>) {
    let (volume, platform) = (Arc::clone(&life.volume), life.world.platform());
    life.run(async {
        let root = volume.mount(b"").await.unwrap();
        let made = volume.make_directory(&root, b"directory", AttributeChange::default()).await.result.unwrap().0;
        let (handle, held) = (volume.handle(&made).as_bytes().to_vec(), volume.hold(&made).unwrap());
        let mut removal = Box::pin(volume.remove_directory(&root, b"directory"));
        for _ in 0..steps {
            if poll_fn(|context| Poll::Ready(removal.as_mut().poll(context).is_ready())).await {
                return (true, handle, held);
            }
            platform.preemption_point().await;
        }
        (false, handle, held)
    })
}

// rule: 12: an open directory that loses its name goes on after a kill at any moment
// kept in: `product/volume/src/handles/hold.rs`
#[test]
fn a_held_directory_goes_on_without_its_name_after_a_kill_at_any_moment() {
    let mut has_ended = false;
    for steps in (1..).take_while(|steps| *steps < 100) {
        if has_ended {
            break;
        }
        let life = Life::first(steps);
        let (ended, handle, held) = unname_directory(&life, steps);
        has_ended = ended;
        let life = life.next(steps, &mut Random::new(steps));
        let directory = life.run(life.volume.hold_inherited(&handle)).unwrap();
        drop(held);
        life.run(async {
            let change = AttributeChange { mode: Some(0o700), ..AttributeChange::default() };
            life.volume.set_attributes(&directory, change, None).await.result.unwrap();
            let attributes = life.volume.attributes(&directory).await.unwrap();
            assert_eq!(attributes.mode & 0o777, 0o700);
            let objects = life.tree.objects();
            drop(directory);
            assert_eq!(
                life.tree.objects(),
                objects - usize::from(attributes.links == 0),
                "it ends with its last holder"
            );
        });
    }
    assert!(has_ended);
}

#[test]
fn a_directory_that_keeps_its_name_is_not_kept_without_one() {
    let life = Life::first(1);
    life.run(async {
        let root = life.volume.mount(b"").await.unwrap();
        let made = life.volume.make_directory(&root, b"full", AttributeChange::default()).await.result.unwrap().0;
        let held = life.volume.hold(&made).unwrap();
        create(&life.volume, &held, b"below").await;
        let refused = life.volume.remove_directory(&root, b"full").await.result;
        assert_eq!((refused.err(), life.tree.unnamed_count()), (Some(VolumeError::NotEmpty), 0));
        life.volume.remove(&held, b"below").await.result.unwrap();
        life.volume.remove_directory(&root, b"full").await.result.unwrap();
        assert_eq!(life.tree.unnamed_count(), 1);
        drop((held, made));
        assert_eq!(life.tree.unnamed_count(), 0);
    });
}

#[test]
fn a_file_made_without_a_name_gets_one_after_a_kill() {
    let life = Life::first(1);
    let (handle, file) = life.run(async {
        let root = life.volume.mount(b"").await.unwrap();
        let (file, _) =
            life.volume.create_unnamed_by(&Caller::SERVER, &root, AttributeChange::default()).await.unwrap();
        write(&life.volume, &file, 0, &[7; 5000]).await;
        (life.volume.handle(&file).as_bytes().to_vec(), file)
    });
    let (life, file) = Unnamed { life, handle, file }.killed(2);
    life.run(async {
        let root = life.volume.mount(b"").await.unwrap();
        assert_eq!(life.tree.unnamed_count(), 1);
        life.volume.link(&file, &root, b"named").await.result.unwrap();
        assert_eq!(life.tree.unnamed_count(), 0, "it has a name");
        drop(file);
        let (found, attributes) = life.volume.lookup(&root, b"named").await.unwrap();
        assert_eq!((read(&life.volume, &found).await, attributes.links), (vec![7; 5000], 1));
    });
}

#[test]
fn a_file_that_keeps_a_name_is_not_kept_without_one() {
    let Unnamed { life, file, handle } = Unnamed::new(1);
    life.run(async {
        let root = life.volume.mount(b"").await.unwrap();
        let refused = life.volume.rename(&root, b"absent", &root, b"file").await.0.result;
        assert_eq!((refused.err(), life.tree.unnamed_count()), (Some(VolumeError::NotFound), 0));
        life.volume.link(&file, &root, b"second").await.result.unwrap();
        life.volume.remove(&root, b"file").await.result.unwrap();
        assert_eq!(life.tree.unnamed_count(), 0, "it has another name");
        life.volume.remove(&root, b"second").await.result.unwrap();
        assert_eq!(life.tree.unnamed_count(), 1);
        drop(file);
        assert_eq!(life.tree.unnamed_count(), 0);
    });
    let life = life.next(2, &mut Random::new(2));
    assert_eq!(life.run(life.volume.hold_inherited(&handle)).err(), Some(VolumeError::Stale));
}

/// A change of names, for a call that may have been begun before.
async fn change(volume: &Arc<Files>, number: usize, call: &Arc<KeptCall>) -> Result<(), VolumeError> {
    let root = volume.mount(b"").await.unwrap();
    let (caller, name) = (Caller::SERVER.keeping(Arc::clone(call).asked()), &b"new"[..]);
    match number {
        0 => volume.make_directory_by(&caller, &root, name, AttributeChange::default()).await.result.map(drop),
        1 => volume.remove_by(&caller, &root, b"file").await.result,
        2 => volume.rename_by(&caller, &root, b"file", &root, name).await.0.result,
        _ => {
            let file = volume.lookup(&root, b"file").await?.0;
            volume.link_by(&caller, &file, &root, name).await.result.map(drop)
        }
    }
}

/// The names in the root of a server.
async fn names(volume: &Arc<Files>) -> String {
    let root = volume.mount(b"").await.unwrap();
    let names = volume.list(&root, 0, 100, false).await.unwrap().entries;
    let mut names: Vec<_> = names.iter().map(|entry| String::from_utf8_lossy(&entry.name)).collect();
    names.sort();
    names.join(" ")
}

// rule: a change of names that a client repeats after a kill at any moment succeeds if its note was persisted, and is
// done once
// kept in: `product/volume/src/names/repeated.rs`
#[test]
fn a_change_repeated_after_a_kill_at_any_moment_is_done_once() {
    for number in 0..4 {
        let mut has_ended = false;
        for steps in (1..).take_while(|steps| *steps < 100) {
            if has_ended {
                break;
            }
            let (life, call) = (after_kill(), Arc::new(KeptCall::default()));
            let (volume, platform) = (Arc::clone(&life.volume), Arc::clone(life.world.platform()));
            has_ended = life.run(async {
                let mut first = Box::pin(change(&volume, number, &call));
                for _ in 0..steps {
                    if poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_ready())).await {
                        return true;
                    }
                    platform.preemption_point().await;
                }
                false
            });
            drop(volume);
            let life = life.next(steps, &mut Random::new(steps));
            life.run(async {
                change(&life.volume, number, &call).await.unwrap();
                let wanted = [". .. file new", ". ..", ". .. new", ". .. file new"][number];
                assert_eq!(names(&life.volume).await, wanted, "change {number} killed after {steps} steps");
                // The linked file is not synced, only the directory that has the name.
                assert_eq!(life.tree.unsynced(), usize::from(number == 3), "change {number} is durable at its answer");
            });
        }
        assert!(has_ended);
    }
}

// rule: a change of names that a kill left without a note is judged by its own outcome
// kept in: `product/volume/src/names/repeated.rs`
#[test]
fn without_a_note_a_repeated_change_finds_the_name_taken_or_gone() {
    let outcomes = [VolumeError::Exists, VolumeError::NotFound, VolumeError::NotFound, VolumeError::Exists];
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let (life, call) = (after_kill(), Arc::new(KeptCall::losing()));
        life.run(change(&life.volume, number, &call)).unwrap();
        let life = life.next(2, &mut Random::new(2));
        assert_eq!(life.run(change(&life.volume, number, &call)), Err(outcome), "change {number}");
    }
}
