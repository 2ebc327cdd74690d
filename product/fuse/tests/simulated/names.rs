//! Names: making, finding, changing and listing.

use crate::kernel::{Kernel, ROOT, longs, name, u32_at, u64_at, words};

const NO_ENTRY: i32 = 2;

#[test]
fn things_are_made_found_renamed_and_removed() {
    let kernel = Kernel::new();
    let sub = kernel.make_directory(ROOT, "sub").node;
    let (file, _) = kernel.create(sub, "file");
    let found = kernel.look_up(sub, "file").unwrap();
    assert_eq!((found.node, found.mode, found.size, found.links), (file, 0o100_644, 0, 1));
    kernel.call(12, sub, &[longs(&[ROOT]), name("file"), name("moved")].concat()).unwrap();
    assert_eq!(kernel.look_up(sub, "file").err(), Some(NO_ENTRY));
    assert_eq!(kernel.look_up(ROOT, "moved").unwrap().node, file, "a node outlives a rename");
    assert_eq!(kernel.call(11, ROOT, &name("moved")), Err(20), "RMDIR of a file");
    kernel.call(10, ROOT, &name("moved")).unwrap();
    kernel.call(11, ROOT, &name("sub")).unwrap();
    assert_eq!(kernel.look_up(ROOT, "sub").err(), Some(NO_ENTRY));
}

#[test]
fn a_second_name_has_the_same_node() {
    let kernel = Kernel::new();
    let (file, _) = kernel.create(ROOT, "one");
    let linked = kernel.entry(13, ROOT, &[longs(&[file]), name("two")].concat()).unwrap();
    assert_eq!((linked.node, linked.links), (file, 2));
    kernel.call(10, ROOT, &name("one")).unwrap();
    assert_eq!(kernel.look_up(ROOT, "two").unwrap().node, file);
}

#[test]
fn links_and_pipes_keep_what_they_are() {
    let kernel = Kernel::new();
    let link = kernel.entry(6, ROOT, &[name("link"), name("some/where")].concat()).unwrap();
    assert_eq!(link.mode & 0o170_000, 0o120_000);
    assert_eq!(kernel.call(5, link.node, &[]).unwrap(), b"some/where");
    let pipe = kernel.entry(8, ROOT, &[words(&[0o010_600, 0, 0, 0]), name("pipe")].concat()).unwrap();
    assert_eq!(pipe.mode, 0o010_600);
    let file = kernel.entry(8, ROOT, &[words(&[0o100_640, 0, 0, 0]), name("file")].concat()).unwrap();
    assert_eq!(file.mode, 0o100_640);
}

#[test]
fn names_that_cannot_be_are_refused() {
    let kernel = Kernel::new();
    kernel.create(ROOT, "a");
    assert_eq!(kernel.look_up(ROOT, &"x".repeat(256)).err(), Some(36));
    assert_eq!(kernel.call(1, ROOT, b"without an end"), Err(22));
    assert_eq!(kernel.entry(9, ROOT, &[words(&[0o755, 0]), name("a/b")].concat()).err(), Some(22));
}

// rule: a rename in a mount replaces, refuses to replace, or exchanges, as its flags say
#[test]
fn a_rename_replaces_or_refuses_or_exchanges() {
    let kernel = Kernel::new();
    let (a, b) = (kernel.create(ROOT, "a").0, kernel.create(ROOT, "b").0);
    let sub = kernel.make_directory(ROOT, "sub").node;
    let rename = |flags, to: &str| {
        let body = [longs(&[ROOT]), words(&[flags, 0]), name("a"), name(to)].concat();
        kernel.call(45, ROOT, &body).map(drop)
    };
    let node = |of: &str| kernel.look_up(ROOT, of).map(|found| found.node);
    assert_eq!(rename(1, "b"), Err(17), "NOREPLACE");
    assert_eq!(rename(2, "none"), Err(NO_ENTRY), "EXCHANGE with nothing");
    for flags in [3, 4, 5, 8, u32::MAX] {
        assert_eq!(rename(flags, "b"), Err(22), "{flags}: WHITEOUT, or unknown flags");
    }
    rename(2, "b").unwrap();
    assert_eq!((node("a"), node("b")), (Ok(b), Ok(a)));
    rename(2, "sub").unwrap();
    assert_eq!((node("a"), node("sub")), (Ok(sub), Ok(b)));
    rename(2, "sub").unwrap();
    rename(0, "b").unwrap();
    assert_eq!((node("a"), node("b")), (Err(NO_ENTRY), Ok(b)));
}

#[test]
fn a_file_without_a_name_gets_one_by_a_link() {
    let kernel = Kernel::new();
    let unnamed = || {
        let body = [words(&[0o20_200_002, 0o100_640, 0, 0]), name("/")].concat();
        kernel.entry(51, ROOT, &body).unwrap()
    };
    let made = unnamed();
    let fh = u64_at(&made.more, 0);
    assert_eq!((made.mode, made.links), (0o100_640, 0));
    kernel.write(fh, 0, b"bytes").unwrap();
    assert_eq!(kernel.list(ROOT, 4096, false).len(), 2, "only . and ..");
    let linked = kernel.entry(13, ROOT, &[longs(&[made.node]), name("named")].concat()).unwrap();
    assert_eq!((linked.node, linked.links, linked.size), (made.node, 1, 5));
    let release = |fh: u64| kernel.call(18, 0, &[longs(&[fh]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
    release(fh);
    let fh = kernel.open(kernel.look_up(ROOT, "named").unwrap().node, 0).unwrap();
    assert_eq!(kernel.read(fh, 0, 10).unwrap(), b"bytes");
    let other = unnamed();
    assert_eq!(kernel.tree.objects(), 3);
    release(u64_at(&other.more, 0));
    assert_eq!(kernel.tree.objects(), 2, "without a name it goes with its last RELEASE");
}

#[test]
fn exclusive_creation_fails_and_another_one_finds_a_file_that_appeared() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, b"12345").unwrap();
    let create = |flags| kernel.entry(35, ROOT, &[words(&[flags, 0o100_600, 0, 0]), name("file")].concat());
    assert_eq!(create(0o302).err(), Some(17), "O_EXCL");
    let found = create(0o102).unwrap();
    assert_eq!((found.node, found.size, found.mode), (file, 5, 0o100_644));
    let emptied = create(0o1102).unwrap();
    assert_eq!((emptied.node, emptied.size), (file, 0), "O_TRUNC");
    kernel.make_directory(ROOT, "sub");
    let on_directory = kernel.entry(35, ROOT, &[words(&[0o102, 0o100_600, 0, 0]), name("sub")].concat());
    assert_eq!(on_directory.err(), Some(116), "the kernel looks again");
}

#[test]
fn a_listing_in_pieces_has_every_name_once() {
    let kernel = Kernel::new();
    let sub = kernel.make_directory(ROOT, "sub").node;
    let names: Vec<String> = (0..200).map(|at| format!("{}-{at}", "n".repeat(at % 60))).collect();
    for name in &names {
        kernel.create(sub, name);
    }
    for with_attributes in [false, true] {
        let mut listed: Vec<String> =
            kernel.list(sub, 4096, with_attributes).into_iter().map(|(name, _)| name).collect();
        assert_eq!(listed[..2], [".", ".."]);
        listed.drain(..2);
        listed.sort();
        let mut wanted = names.clone();
        wanted.sort();
        assert_eq!(listed, wanted, "{with_attributes}");
    }
}

#[test]
fn attributes_are_set_field_by_field_and_space_is_told() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &[7; 5000]).unwrap();
    kernel.set(file, 1 << 0, 68, &words(&[0o100_600])).unwrap();
    kernel.set(file, 1 << 3, 16, &longs(&[100])).unwrap();
    assert_eq!(kernel.attributes(file), Ok((100, 0o100_600)));
    let answer = kernel.set(file, 1 << 5, 40, &longs(&[1_000_000])).unwrap();
    assert_eq!(u64_at(&answer, 16 + 32), 1_000_000, "the modification time");
    let space = kernel.call(17, ROOT, &[]).unwrap();
    assert_eq!((space.len(), u32_at(&space, 40), u32_at(&space, 44)), (80, 4096, 255));
    assert!(u64_at(&space, 0) >= u64_at(&space, 8) && u64_at(&space, 0) > 0);
}
