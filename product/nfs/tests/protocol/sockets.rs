//! The small client against the server, over real sockets: each tests the other, and they share no code.

use std::time::Duration;

use afflux_nfs_client::{Change, Client, Creation, Kind, Load, Node, Sending, User, stable_how};

use crate::world::World;

#[test]
fn the_small_client_speaks_every_procedure() {
    let world = World::new();
    let mut client = Client::connect(world.serve()).unwrap();
    client.null().unwrap();
    assert_eq!(client.exports().unwrap(), ["/"]);
    let root = client.mount("/").unwrap();
    assert_eq!(client.mounts().unwrap(), [("127.0.0.1".to_owned(), "/".to_owned())]);
    client.set_user(Some(User { uid: 1000, gid: 1000 }));
    let made = client.mkdir(&root, b"d", Change::default()).unwrap();
    let directory = made.handle.unwrap();
    let file = client.create_empty(&directory, b"file").unwrap();
    assert_eq!(client.find(&root, "d/file").unwrap(), file);
    let data: Vec<u8> = (0..3_000_000_u32).map(|at| ((at * 3) >> 4) as u8).collect();
    client.write_all(&file, 0, &data, 100_000, 8).unwrap();
    assert!(client.read_all(&file, 0, 4_000_000, 65_536, 8).unwrap() == data);
    assert!(std::fs::read(world.path.join("d/file")).unwrap() == data);
    let written = client.write(&file, 5, b"hello", stable_how::FILE_SYNC).unwrap();
    assert_eq!((written.count, written.committed), (5, stable_how::FILE_SYNC));
    assert_eq!(client.read(&file, 5, 5).unwrap().data, b"hello");
    assert_eq!(client.commit(&file, 0, 0).unwrap().verf.0, written.verf.0);
    let attributes = client.getattr(&file).unwrap();
    assert_eq!((attributes.size, attributes.type_ as u32), (3_000_000, 1));
    let smaller = Change { size: Some(10), ..Change::default() };
    client.setattr(&file, smaller, Some(attributes.ctime)).unwrap();
    assert_eq!(client.setattr(&file, smaller, Some(attributes.ctime)).unwrap_err().status(), Some(10_002));
    assert_eq!(client.access(&file, 3).unwrap().access & 1, 1);
    client.symlink(&root, b"l", b"d/file", Change::default()).unwrap();
    let link = client.lookup(&root, b"l").unwrap().0;
    assert_eq!(client.readlink(&link).unwrap(), b"d/file");
    client.mknod(&root, b"p", Node::Fifo(Change::default())).unwrap();
    client.create(&root, b"e", Creation::Exclusive([1; 8])).unwrap();
    client.link(&file, &root, b"second").unwrap();
    client.rename((&root, b"second"), (&directory, b"third")).unwrap();
    let mut names: Vec<_> = client.entries(&directory).unwrap().into_iter().map(|entry| entry.name).collect();
    names.sort();
    assert_eq!(names, [b"file".to_vec(), b"third".to_vec()]);
    assert_eq!(client.readdir(&directory, 0, [0; 8], 4096).unwrap().entries.len(), 4);
    client.remove(&directory, b"file").unwrap();
    client.remove(&directory, b"third").unwrap();
    client.rmdir(&root, b"d").unwrap();
    assert!(client.fsstat(&root).unwrap().tbytes > 0);
    assert_eq!(client.fsinfo(&root).unwrap().rtmax, 1 << 20);
    assert_eq!(client.pathconf(&root).unwrap().name_max, 255);
    client.unmount("/").unwrap();
    assert!(client.mounts().unwrap().is_empty());
    assert_eq!(client.getattr(&directory).unwrap_err().status(), Some(70));
}

#[test]
fn a_steady_load_is_answered() {
    let world = World::new();
    let mut client = Client::connect(world.serve()).unwrap();
    let root = client.mount("/").unwrap();
    let file = client.create_empty(&root, b"file").unwrap();
    client.write_all(&file, 0, &vec![1; 4 << 20], 65_536, 4).unwrap();
    for kind in [Kind::GetAttributes, Kind::Read(4096), Kind::Write(4096, stable_how::UNSTABLE)] {
        for sending in [Sending::Plain, Sending::Batched] {
            let load = Load {
                kind,
                window: 64,
                sending,
                file_bytes: 4 << 20,
                sequential: false,
                duration: Duration::from_millis(50),
                seed: 1,
            };
            let report = client.load(&file, &load).unwrap();
            assert!(report.calls >= 64, "{report:?}");
        }
    }
}

#[test]
fn a_call_sent_again_over_another_connection_is_not_run_again() {
    let world = World::new();
    let at = world.serve();
    let mut client = Client::connect(at).unwrap();
    let root = client.mount("/").unwrap();
    let xid = client.next_xid();
    client.mkdir(&root, b"d", Change::default()).unwrap();
    let mut second = Client::connect(at).unwrap();
    second.set_next_xid(xid);
    second.mkdir(&root, b"d", Change::default()).unwrap();
    assert_eq!(second.mkdir(&root, b"d", Change::default()).unwrap_err().status(), Some(17));
}
