//! A number of calls that the cache answers and nothing else, to be counted by callgrind:
//! `call_instructions read|write|getattr COUNT [UID]`.
//!
//! Each call moves 64 bytes of a 64-page file. With a UID calls are carried out as that user, which needs root;
//! without, as the server's own. Counting two runs and dividing the difference by the difference of COUNT leaves start
//! and end out.
#![allow(clippy::unwrap_used, missing_docs, reason = "a measured program")]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::BytesMut;
use engine::Engine;
use engine::settings::Settings;
use frames::Frames;
use frontend::{Machine, Peer, Segment};
use frontend_nfs::{Admission, Rules, Server};
use platform_linux::{Caching, HostOptions, HostTree, IoChoice, Reactors, WorkerPool, host_devices};
use volume::{AttributeChange, CreateHow, HandleKey, Volume};

const PAGES: u64 = 64;
const BYTES: u32 = 64;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn call(procedure: u32, user: u32, arguments: &[u8]) -> Vec<u8> {
    // AUTH_SYS: a stamp, a machine's name, user and group, two further groups.
    let credential = [words(&[7, 8]), b"a client".to_vec(), words(&[user, 100, 2, 24, 27])].concat();
    let header = words(&[9, 0, 2, 100_003, 3, procedure, 1, credential.len() as u32]);
    let record = [&header[..], &credential, &words(&[0, 0]), arguments].concat();
    [words(&[1 << 31 | record.len() as u32]), record].concat()
}

fn opaque(bytes: &[u8]) -> Vec<u8> {
    let mut field = words(&[bytes.len() as u32]);
    field.extend(bytes);
    field.resize(field.len().next_multiple_of(4), 0);
    field
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (kind, count) = (&arguments[1], arguments[2].parse::<u64>().unwrap());
    let uid: Option<u32> = arguments.get(3).map(|uid| uid.parse().unwrap());
    let path = std::env::temp_dir().join(format!("afflux-calls-{}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    // System calls instead of a ring: valgrind knows them all.
    let reactors = Reactors::start(1, IoChoice::Syscalls).unwrap();
    let platform = reactors.platform();
    let mut settings = Settings::with([&volume::KNOBS, &frontend_nfs::KNOBS]);
    for knob in ["dirty_background_ratio=100", "dirty_expire_centisecs=360000", "attributes_idle_centisecs=360000"] {
        settings.set_text(knob).unwrap();
    }
    let engine = Engine::new(Arc::new(platform.clone()), settings, Frames::new(16 << 20).unwrap());
    let pool = WorkerPool::new("calls", 4, 64);
    let tree = HostTree::open(std::slice::from_ref(&path), &pool, &HostOptions::default()).unwrap();
    let volume = Volume::new(engine, tree, HandleKey::new([7; 16]), host_devices(&platform, Caching::Auto)).unwrap();
    let root = platform.block_on(volume.mount(b"/")).unwrap();
    let mode = AttributeChange { mode: Some(0o666), ..AttributeChange::default() };
    let (file, _) = platform.block_on(volume.create(&root, b"file", CreateHow::Guarded(mode))).result.unwrap();
    for page in 0..PAGES {
        platform.block_on(volume.write(&file, page * 4096, vec![7; 4096].into())).result.unwrap();
    }
    let admission = match uid {
        None => Admission::AnyPeer,
        Some(_) => Rules::of_callers(Arc::new(|_| (0, Vec::new()))).into(),
    };
    let server = Server::new(Arc::clone(&volume), admission);
    let peer = Peer { address: Ipv4Addr::LOCALHOST.into(), port: 700, socket_owner: Some(0) };
    let mut connection = server.connection(peer);
    let handle = opaque(volume.handle(&file).as_bytes());
    let (mut input, mut output) = (BytesMut::new(), Vec::<Segment>::new());
    let mut cx = Context::from_waker(Waker::noop());
    let at = |at: u64| (at * 37 % PAGES * 4096).to_be_bytes();
    let record = |number: u64| match kind.as_str() {
        "read" => call(6, uid.unwrap_or(1000), &[&handle[..], &at(number), &words(&[BYTES])].concat()),
        "getattr" => call(1, uid.unwrap_or(1000), &handle),
        _ => {
            let data = opaque(&[1; BYTES as usize]);
            call(7, uid.unwrap_or(1000), &[&handle[..], &at(number), &words(&[BYTES, 0]), &data].concat())
        }
    };
    let calls: Vec<Vec<u8>> = (0..PAGES).map(record).collect();
    for number in 0..count + 1 {
        if kind == "none" {
            continue;
        }
        input.extend_from_slice(&calls[(number % PAGES) as usize]);
        connection.receive(&mut input).unwrap();
        // The host may be asked once, the first time.
        while connection.poll_output(&mut cx, &mut output).is_pending() {
            assert!(number == 0, "call {number} was no hit");
        }
        output.clear();
    }
    engine_ends(&volume);
    drop((connection, server));
    std::fs::remove_dir_all(&path).unwrap();
}

/// Nothing is to be written any more.
fn engine_ends<P: volume::Platform>(volume: &Arc<Volume<P>>) {
    std::hint::black_box(volume.engine().status());
}
