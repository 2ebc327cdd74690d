//! Nodes and open files: their numbers, and the end of each.
//!
//! rule: an object that is open in a mount is used without a name until its last RELEASE

use crate::kernel::{Kernel, ROOT, longs, name, u32_at, u64_at, words};

const STALE: i32 = 116;

#[test]
fn a_node_goes_with_its_last_lookup_and_its_number_with_it() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    kernel.look_up(ROOT, "file").unwrap();
    let forget = |lookups| assert!(kernel.send(kernel.message(2, file, &longs(&[lookups]))).is_none());
    forget(1);
    assert_eq!((kernel.mount.nodes(), kernel.attributes(file).is_ok()), (2, true));
    forget(1);
    assert_eq!((kernel.mount.nodes(), kernel.attributes(file)), (1, Err(STALE)));
    // An open file does not need its node.
    assert_eq!(kernel.write(fh, 0, b"still"), Ok(5));
    let again = kernel.look_up(ROOT, "file").unwrap();
    assert_ne!(again.node, file, "a number is not given to another node");
    assert_eq!(again.size, 5);
}

#[test]
fn a_listing_with_attributes_counts_its_nodes_but_not_the_dots() {
    let kernel = Kernel::new();
    let sub = kernel.make_directory(ROOT, "sub").node;
    let made: Vec<u64> = ["a", "b", "c"].map(|name| kernel.create(sub, name).0).to_vec();
    let listed = kernel.list(sub, 4096, true);
    assert_eq!(listed.iter().filter(|(name, _)| name.starts_with('.')).map(|(_, node)| node).sum::<u64>(), 0);
    let mut nodes: Vec<u64> = listed.iter().map(|(_, node)| *node).filter(|node| *node != 0).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, made);
    // Each has two lookups now; one message takes them all back.
    let pairs: Vec<u64> = made.iter().flat_map(|node| [*node, 2]).collect();
    let batch = [words(&[made.len() as u32, 0]), longs(&pairs)].concat();
    assert!(kernel.send(kernel.message(42, 0, &batch)).is_none());
    assert_eq!(kernel.mount.nodes(), 2, "the root and the directory");
}

#[test]
fn the_root_is_never_forgotten_and_foreign_numbers_are_refused() {
    let kernel = Kernel::new();
    kernel.send(kernel.message(2, ROOT, &longs(&[u64::MAX])));
    assert!(kernel.attributes(ROOT).is_ok());
    for number in [0, 2, u64::MAX, 1 << 32 | 1] {
        assert_eq!(kernel.attributes(number), Err(STALE), "{number}");
        assert_eq!(kernel.read(number, 0, 1), Err(9), "{number}");
        assert_eq!(kernel.sync(number), Err(9), "{number}");
    }
}

#[test]
fn a_closed_file_is_closed_and_its_number_names_nothing() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    let second = kernel.open(file, 0).unwrap();
    assert_eq!(kernel.mount.open_files(), 2);
    kernel.call(18, file, &[longs(&[fh]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
    assert_eq!((kernel.mount.open_files(), kernel.read(fh, 0, 1), kernel.read(second, 0, 1)), (1, Err(9), Ok(vec![])));
    assert_eq!(kernel.call(27, file, &words(&[0, 0])), Err(20), "OPENDIR of a file");
    assert_eq!(kernel.open(ROOT, 0), Err(21), "OPEN of a directory");
}

#[test]
fn an_open_file_lives_on_after_its_last_name_and_ends_with_its_release() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    let second = kernel.open(file, 0o2).unwrap();
    kernel.write(fh, 0, b"before").unwrap();
    kernel.call(10, ROOT, &name("file")).unwrap();
    assert_eq!(kernel.look_up(ROOT, "file").err(), Some(2));
    kernel.write(second, 6, b" and after").unwrap();
    assert_eq!(kernel.read(fh, 0, 100).unwrap(), b"before and after");
    kernel.sync(fh).unwrap();
    kernel.drop_pages();
    assert_eq!(kernel.read(fh, 0, 100).unwrap(), b"before and after");
    let by_handle = [words(&[1, 0]), longs(&[fh])].concat();
    let told = kernel.call(3, file, &by_handle).unwrap();
    assert_eq!((u64_at(&told, 24), u32_at(&told, 80)), (16, 0), "size and names");
    let mut size = vec![0; 88];
    size[..4].copy_from_slice(&(1_u32 << 3 | 1 << 6).to_ne_bytes());
    size[8..16].copy_from_slice(&fh.to_ne_bytes());
    size[16..24].copy_from_slice(&6_u64.to_ne_bytes());
    kernel.call(4, file, &size).unwrap();
    assert_eq!(kernel.read(second, 0, 100).unwrap(), b"before");
    let release = |fh: u64| kernel.call(18, file, &[longs(&[fh]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
    release(fh);
    assert_eq!((kernel.read(second, 0, 100).unwrap(), kernel.tree.objects()), (b"before".to_vec(), 2));
    release(second);
    assert_eq!((kernel.attributes(file), kernel.tree.objects()), (Err(STALE), 1), "discarded with its last holder");
}

#[test]
fn an_open_directory_lives_on_after_its_removal() {
    let kernel = Kernel::new();
    let sub = kernel.make_directory(ROOT, "sub").node;
    let fh = u64_at(&kernel.call(27, sub, &words(&[0, 0])).unwrap(), 0);
    kernel.call(11, ROOT, &name("sub")).unwrap();
    assert!(kernel.attributes(sub).is_ok());
    let create = [words(&[0o102, 0o100_644, 0, 0]), name("late")].concat();
    assert_eq!(kernel.entry(35, sub, &create).err(), Some(STALE), "it takes no names");
    kernel.call(29, sub, &[longs(&[fh]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
    assert_eq!((kernel.attributes(sub), kernel.tree.objects()), (Err(STALE), 1));
}

#[test]
fn an_object_that_is_gone_is_stale() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    kernel.call(18, file, &[longs(&[fh]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
    kernel.call(10, ROOT, &name("file")).unwrap();
    assert_eq!(kernel.attributes(file), Err(STALE));
}
