//! A volume in an object store as a mount of this host: in a directory as the store.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, SeekFrom, XattrFlags, fallocate, getxattr, linkat, listxattr, openat,
    seek, setxattr,
};

use crate::client::Client;
use crate::mounted::{Mounted, NOT_CONNECTED, can_mount, is_mounted, shell};
use crate::mounts::{can_set_lists, check_lists, says_to_user};
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, afflux, text};

fn places(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let store = scratch.directory("store");
    (PathBuf::from(format!("file://{}", store.display())), scratch.directory("point"))
}

fn xattr(path: &Path, name: &str) -> Vec<u8> {
    let mut value = [0; 64];
    let bytes = getxattr(path, name, &mut value).unwrap();
    value[..bytes].to_vec()
}

// rule: a mount of a volume in a store has files, links, holes, extended attributes and files without a name, and the
// next server has them, too kept in: `product/command/src/serve/front.rs`, `product/object/src/tree/directory.rs`
#[test]
fn a_volume_in_a_store_is_mounted_with_all_that_programs_use() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (store, point) = places(&scratch);
    let mounted = Mounted::start(scratch.path(), &store, &point);
    let bytes = Bytes::new(1).vec(9_000_017);
    fs::create_dir(mounted.path("d")).unwrap();
    fs::write(mounted.path("d/file"), &bytes).unwrap();
    fs::hard_link(mounted.path("d/file"), mounted.path("second")).unwrap();
    let sparse = File::create(mounted.path("sparse")).unwrap();
    sparse.write_all_at(b"x", 1 << 30).unwrap();
    assert_eq!(seek(&sparse, SeekFrom::Data(0)).unwrap(), 1 << 30);
    sparse.sync_all().unwrap();
    assert_eq!(seek(&sparse, SeekFrom::Hole(1 << 30)).unwrap(), (1 << 30) + 1);
    fallocate(&sparse, FallocateFlags::empty(), 0, 8192).unwrap();
    let mut removed = File::create_new(mounted.path("gone")).unwrap();
    fs::remove_file(mounted.path("gone")).unwrap();
    removed.write_all(b"still there").unwrap();
    assert_eq!(removed.metadata().unwrap().nlink(), 0);
    setxattr(mounted.path("second"), "user.word", b"value", XattrFlags::CREATE).unwrap();
    let nameless = OFlags::TMPFILE | OFlags::RDWR;
    let mut nameless = File::from(openat(CWD, mounted.path("d"), nameless, Mode::from_raw_mode(0o600)).unwrap());
    nameless.write_all(b"named later").unwrap();
    let link = format!("/proc/self/fd/{}", nameless.as_raw_fd());
    linkat(CWD, link, CWD, mounted.path("named"), AtFlags::SYMLINK_FOLLOW).unwrap();
    // The kernel checks the rights of other users by the volume's modes.
    let output =
        shell("chmod 700 d; setpriv --reuid=65534 --regid=65534 --clear-groups cat d/file 2>&1 | tail -c 18", &point);
    assert_eq!(text(&output), "Permission denied\n");
    drop((sparse, removed, nameless));
    mounted.stop();
    let mounted = Mounted::start(scratch.path(), &store, &point);
    assert!(fs::read(mounted.path("d/file")).unwrap() == bytes);
    assert_eq!(xattr(&mounted.path("d/file"), "user.word"), b"value");
    let mut names = [0; 64];
    let length = listxattr(mounted.path("second"), &mut names[..]).unwrap();
    assert_eq!(&names[..length], b"user.word\0");
    assert_eq!(fs::read_to_string(mounted.path("named")).unwrap(), "named later");
    assert!(fs::metadata(mounted.path("sparse")).unwrap().blocks() <= 32);
    assert!(!mounted.path("gone").exists());
    mounted.stop();
}

// rule: access control lists of a volume in a store count on its mount, also those of an earlier server
// kept in: `product/object/src/tree/acl.rs`
#[test]
fn access_control_lists_of_a_store_count_on_its_mount_as_those_of_a_host() {
    if !can_set_lists() {
        return;
    }
    let scratch = Scratch::new();
    let (store, point) = places(&scratch);
    let mounted = Mounted::start(scratch.path(), &store, &point);
    check_lists(&mounted, &point);
    let shared =
        "mkdir -m 700 shared; setfacl -d -m u:4444:rwx shared; setfacl -m u:4444:rx shared; echo text > shared/a";
    assert_eq!(text(&shell(shared, &point)), "");
    mounted.stop();
    let mounted = Mounted::start(scratch.path(), &store, &point);
    assert_eq!(says_to_user("cat shared/a", &point), "text\n");
    assert!(says_to_user("echo > shared/b", &point).contains("Permission denied"), "it may not add names");
    assert_eq!(
        text(&shell("cd shared; getfacl -cn a | grep 4444; getfattr -m - a", &point)).lines().next(),
        Some("user:4444:rwx\t#effective:rw-")
    );
    mounted.stop();
}

// rule: a mount of a volume in a store loses no synced bytes when its server is killed
// kept in: `product/object/src/commit.rs`
#[test]
fn a_killed_mount_of_a_store_has_kept_what_was_synced() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (store, point) = places(&scratch);
    let mut mounted = Mounted::start(scratch.path(), &store, &point);
    let bytes = Bytes::new(2).vec(3_000_003);
    fs::create_dir(mounted.path("d")).unwrap();
    let mut file = File::create(mounted.path("d/synced")).unwrap();
    file.write_all(&bytes).unwrap();
    file.sync_all().unwrap();
    mounted.server.take().unwrap().kill();
    assert_eq!(file.write_all(b"late").unwrap_err().raw_os_error(), NOT_CONNECTED);
    drop((file, mounted));
    let mounted = Mounted::start(scratch.path(), &store, &point);
    assert!(fs::read(mounted.path("d/synced")).unwrap() == bytes);
    mounted.stop();
}

// rule: a mount and NFS clients of one volume in a store see each other's changes at once
// kept in: `product/command/src/serve/front.rs`
#[test]
fn a_store_is_served_over_nfs_and_by_a_mount_from_one_engine() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (store, point) = places(&scratch);
    let server = Server::start(scratch.path(), &[&store], &["--cache", "64MiB", "--mount", point.to_str().unwrap()]);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file(&root, "by nfs", b"one");
    assert_eq!(fs::read_to_string(point.join("by nfs")).unwrap(), "one");
    client.write_file(&root, "by nfs", b"two");
    assert_eq!(fs::read_to_string(point.join("by nfs")).unwrap(), "two");
    fs::write(point.join("by mount"), "three").unwrap();
    assert_eq!(client.read_file(&root, "by mount"), b"three");
    server.stop();
}

// rule: a mount that follows a volume in a store refuses every change
// kept in: `product/command/src/serve/front.rs`, `product/object/src/tree/directory.rs`
#[test]
fn a_mount_of_a_snapshot_refuses_changes() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (store, point) = places(&scratch);
    let mounted = Mounted::start(scratch.path(), &store, &point);
    fs::write(mounted.path("file"), "before").unwrap();
    mounted.stop();
    let made = afflux(scratch.path()).arg("snapshot").arg(&store).arg("then").output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let mounted = Mounted::start_with(scratch.path(), &store, &point, &["--snapshot", "then"]);
    assert_eq!(fs::read_to_string(mounted.path("file")).unwrap(), "before");
    assert_eq!(fs::write(mounted.path("more"), "x").unwrap_err().raw_os_error(), Some(30), "read-only");
    mounted.stop();
}

// rule: a mount of a store that cannot be opened leaves no mount behind
// kept in: `product/command/src/serve/front.rs`
#[test]
fn a_store_that_cannot_be_opened_is_not_mounted() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (_, point) = places(&scratch);
    fs::write(scratch.path().join("plain"), "no directory").unwrap();
    let url = format!("file://{}/plain/volume", scratch.path().display());
    let output = afflux(scratch.path()).arg("mount").arg(&url).arg(&point).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&url));
    assert!(!is_mounted(&point));
}
