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
fn rename_flags_and_names_that_cannot_be_are_refused() {
    let kernel = Kernel::new();
    kernel.create(ROOT, "a");
    let rename = |flags| [longs(&[ROOT]), words(&[flags, 0]), name("a"), name("b")].concat();
    assert_eq!(kernel.call(45, ROOT, &rename(1)), Err(22), "NOREPLACE");
    kernel.call(45, ROOT, &rename(0)).unwrap();
    assert_eq!(kernel.look_up(ROOT, &"x".repeat(256)).err(), Some(36));
    assert_eq!(kernel.call(1, ROOT, b"without an end"), Err(22));
    assert_eq!(kernel.entry(9, ROOT, &[words(&[0o755, 0]), name("a/b")].concat()).err(), Some(22));
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
