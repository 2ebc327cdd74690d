//! The contract beside a store that refuses requests with 503 SlowDown, as public stores do under load.
//!
//! Owns: the load, the refusals by a relay.
//! Does not own: the store.
//! Invariants: a refused request never reaches the store, so each commit needs repetitions.

use std::net::SocketAddr;

use afflux_gateway::{KEY, Relay, SECRET, Treatment};
use afflux_object_store::{Keys, Options, Store};
use bytes::Bytes;

use crate::volume::volume;
use crate::{kills, wait};

/// One of so many requests is refused.
const REFUSE_ONE_IN: u64 = 3;
const FILES: u64 = 8;

/// Refused requests are repeated, and fail no call.
pub(crate) fn contract(target: SocketAddr, url: &str) {
    let relay = Relay::treating(target, Treatment { refuse_one_in: REFUSE_ONE_IN, ..Treatment::default() }).unwrap();
    let endpoint = relay.endpoint();
    let open = |endpoint: &str| {
        let keys = Keys { id: KEY.to_owned(), secret: SECRET.to_owned() };
        wait(Store::open(url, &Options { endpoint: Some(endpoint.to_owned()), keys: Some(keys), ..Options::default() }))
            .unwrap()
    };
    let contents = |ino: u64| Bytes::from(vec![ino as u8; 3_000 * 10_usize.pow(ino as u32 % 4)]);
    {
        let store = open(&endpoint);
        let volume = volume(&store, 1);
        for ino in 1..=FILES {
            volume.write(ino, 0, contents(ino)).unwrap();
        }
        for ino in 1..=FILES {
            wait(volume.commit(ino)).unwrap();
            let bytes = contents(ino);
            assert_eq!(wait(volume.read(ino, 0, bytes.len() as u64)).unwrap(), bytes);
        }
        // The writer ends without a word, as a killed one.
    }
    let store = open(&format!("http://{target}"));
    let second = volume(&store, 2);
    for ino in 1..=FILES {
        let bytes = contents(ino);
        assert_eq!(wait(second.read(ino, 0, bytes.len() as u64)).unwrap(), bytes);
    }
    drop((second, store));
    let variables = [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_ENDPOINT_URL", &*endpoint)];
    kills::rounds(&format!("{url}-kills"), &variables, 8);
    let asked = relay.asked();
    let passed = asked.puts + asked.gets + asked.lists + asked.deletes;
    println!("{passed} requests passed, {} were refused", asked.refused);
    assert!(asked.refused >= 50 && asked.refused * (REFUSE_ONE_IN - 1) <= passed + REFUSE_ONE_IN);
}
