//! Each call of an operation on the host fails, with each error of a volume.

use std::collections::BTreeSet;

use afflux_engine::DeviceError;
use afflux_frontend::Segment;
use afflux_simulator::{Fault, FaultTarget, FaultWhat};
use afflux_volume::VolumeError;

use crate::kernel::{Kernel, ROOT, content, longs, name, u64_at, words};

/// An error, and its number in Linux.
fn table() -> Vec<(VolumeError, i32)> {
    vec![
        (VolumeError::NotFound, 2),
        (VolumeError::Exists, 17),
        (VolumeError::NotDirectory, 20),
        (VolumeError::IsDirectory, 21),
        (VolumeError::NotEmpty, 39),
        (VolumeError::Denied, 13),
        (VolumeError::NotPermitted, 1),
        (VolumeError::Io { errno: 5 }, 5),
        // The kernel would never send the operation again, and would report success.
        (VolumeError::Io { errno: 38 }, 5),
        // The kernel takes a number above 511 for a damaged reply.
        (VolumeError::Io { errno: 512 }, 5),
        (VolumeError::Io { errno: 0 }, 5),
        (VolumeError::Io { errno: 121 }, 121),
        (VolumeError::NoSpace, 28),
        (VolumeError::Quota, 122),
        (VolumeError::TooLarge, 27),
        (VolumeError::ReadOnly, 30),
        (VolumeError::Stale, 116),
        (VolumeError::BadHandle, 116),
        (VolumeError::NameTooLong { bytes: 256 }, 36),
        (VolumeError::Invalid { what: "a test" }, 22),
        (VolumeError::NoAttribute, 61),
        (VolumeError::ValueTooLong { bytes: 65537 }, 7),
        (VolumeError::PastData { offset: 0 }, 6),
        (VolumeError::CrossDevice, 18),
        (VolumeError::TooManyLinks, 31),
        (VolumeError::NotSupported, 95),
        (VolumeError::NotSynchronised, 5),
        (VolumeError::BadCookie, 22),
        (VolumeError::Symlink, 40),
        (VolumeError::Leased, 11),
        (VolumeError::Delayed, 11),
        (VolumeError::NoMemory, 12),
        (VolumeError::NoDescriptor, 23),
    ]
}

/// An error of a device, and its number in Linux.
fn device_errors() -> [(DeviceError, i32); 10] {
    [
        (DeviceError::Io { errno: 5 }, 5),
        (DeviceError::NoSpace, 28),
        (DeviceError::Quota, 122),
        (DeviceError::TooLarge, 27),
        (DeviceError::ReadOnly, 30),
        (DeviceError::Denied, 13),
        (DeviceError::Stale, 116),
        (DeviceError::Unsupported, 95),
        (DeviceError::Hung, 110),
        (DeviceError::Lost, 5),
    ]
}

#[test]
fn the_tables_have_each_error_of_a_volume_and_of_a_device() {
    let rows = table().into_iter().map(|(error, _)| error);
    afflux_scratch::assert_each_variant(rows, include_str!("../../../volume/src/error.rs"), "VolumeError");
    let rows = device_errors().map(|(error, _)| error);
    afflux_scratch::assert_each_variant(rows, include_str!("../../../device/src/error.rs"), "DeviceError");
}

/// A mount with objects, all of them too old to be told about without the host.
struct Rig {
    kernel: Kernel,
    directory: u64,
    file: u64,
    link: u64,
    /// The open file, and the open directory.
    fh: u64,
    directory_fh: u64,
}

const BYTES: usize = 8192;

impl Rig {
    fn new() -> Self {
        const LONG_NS: u64 = 1_000_000_000_000;
        let kernel = Kernel::new();
        let directory = kernel.make_directory(ROOT, "directory").node;
        kernel.make_directory(ROOT, "empty");
        let (file, fh) = kernel.create(ROOT, "file");
        kernel.write(fh, 0, &[1; BYTES]).unwrap();
        kernel.sync(fh).unwrap();
        let (_, inner) = kernel.create(directory, "inner");
        kernel.call(18, 0, &[longs(&[inner]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
        let link = kernel.entry(6, ROOT, &[name("link"), name("file")].concat()).unwrap().node;
        let value = [words(&[1, 0]), name("user.a"), b"1".to_vec()].concat();
        kernel.call(21, file, &value).unwrap();
        let directory_fh = u64_at(&kernel.call(27, directory, &words(&[0, 0])).unwrap(), 0);
        kernel.notices();
        kernel.drop_pages();
        kernel.world.jump(LONG_NS);
        Self { kernel, directory, file, link, fh, directory_fh }
    }

    /// The operations: the name, the number, the node and the body of each.
    fn operations(&self) -> Vec<(&'static str, u32, u64, Vec<u8>)> {
        let Self { directory, file, link, fh, directory_fh, .. } = *self;
        let range = |fh: u64, size: u32| [longs(&[fh, 0]), words(&[size, 0, 0, 0, 0, 0])].concat();
        let set = |valid: u32, at: usize, value: &[u8]| {
            let mut body = vec![0; 88];
            body[..4].copy_from_slice(&valid.to_ne_bytes());
            body[at..at + value.len()].copy_from_slice(value);
            body
        };
        vec![
            ("LOOKUP", 1, directory, name("inner")),
            ("GETATTR", 3, file, vec![0; 16]),
            ("SETATTR of a mode", 4, file, set(1, 68, &0o600_u32.to_ne_bytes())),
            ("SETATTR of a size", 4, file, set(8, 16, &100_u64.to_ne_bytes())),
            ("READLINK", 5, link, vec![]),
            ("SYMLINK", 6, directory, [name("new"), name("target")].concat()),
            ("MKNOD", 8, directory, [words(&[0o010_644, 0, 0, 0]), name("new")].concat()),
            ("MKDIR", 9, directory, [words(&[0o755, 0o22]), name("new")].concat()),
            ("UNLINK", 10, directory, name("inner")),
            ("RMDIR", 11, ROOT, name("empty")),
            ("RENAME", 12, ROOT, [longs(&[directory]), name("file"), name("new")].concat()),
            ("RENAME2", 45, ROOT, [longs(&[directory]), words(&[1, 0]), name("file"), name("new")].concat()),
            ("LINK", 13, directory, [longs(&[file]), name("new")].concat()),
            ("OPEN", 14, file, words(&[2, 0])),
            ("READ", 15, file, range(fh, 4096)),
            ("WRITE", 16, file, [range(fh, 100), vec![2; 100]].concat()),
            ("STATFS", 17, ROOT, vec![]),
            ("FSYNC", 20, file, [longs(&[fh]), words(&[0, 0])].concat()),
            ("SETXATTR", 21, file, [words(&[1, 0]), name("user.b"), b"2".to_vec()].concat()),
            ("GETXATTR", 22, file, [words(&[10, 0]), name("user.a")].concat()),
            ("LISTXATTR", 23, file, words(&[100, 0])),
            ("REMOVEXATTR", 24, file, name("user.a")),
            ("FLUSH", 25, file, longs(&[fh, 0, 0])),
            ("OPENDIR", 27, directory, words(&[0, 0])),
            ("READDIR", 28, directory, range(directory_fh, 4096)),
            ("READDIRPLUS", 44, directory, range(directory_fh, 4096)),
            ("FSYNCDIR", 30, directory, [longs(&[directory_fh]), words(&[0, 0])].concat()),
            ("CREATE", 35, directory, [words(&[0o102, 0o100_644, 0o22, 0]), name("new")].concat()),
            ("FALLOCATE", 43, file, [longs(&[fh, 0, 100_000]), words(&[0, 0])].concat()),
            ("LSEEK", 46, file, [longs(&[fh, 0]), words(&[3, 0])].concat()),
            ("COPY_FILE_RANGE", 47, file, longs(&[fh, 0, file, fh, 4096, 4096, 0])),
            ("TMPFILE", 51, directory, words(&[2, 0o100_600, 0o22, 0])),
        ]
    }

    /// The answer's content or the error's number, from a reply of the right length.
    fn send(&self, opcode: u32, node: u64, body: &[u8]) -> Result<Vec<u8>, i32> {
        const HEADER_BYTES: usize = 16;
        let reply = self.kernel.send(self.kernel.message(opcode, node, body)).unwrap();
        let len = reply.head().len() + reply.data().map_or(0, Segment::len);
        let answer = content(reply, self.kernel.last());
        if answer.is_err() {
            assert_eq!(len, HEADER_BYTES, "an error without data");
        }
        answer
    }

    /// Nodes that the kernel knows, open files, calls that wait, and bytes of theirs.
    fn holds(&self) -> (usize, usize, usize, usize) {
        let mount = &self.kernel.mount;
        (mount.nodes(), mount.open_files(), mount.calls_waiting(), mount.waiting_bytes())
    }
}

/// An operation, one of whose calls to the host fails. Returns the error's number, or 0.
fn fail_once(number: usize, at: u64, error: &VolumeError) -> i32 {
    let rig = Rig::new();
    let (operation, opcode, node, body) = rig.operations().swap_remove(number);
    let what = format!("{operation}, {error:?} at call {at} of the host");
    let before = rig.holds();
    rig.kernel.tree.refuse(at..at + 1, error.clone());
    let answer = rig.send(opcode, node, &body);
    rig.kernel.tree.refuse_nothing();
    let Err(errno) = answer else { return 0 };
    assert_eq!(rig.holds(), before, "{what}: the kernel was told of nothing new");
    assert_eq!(rig.kernel.notices(), [], "{what}");
    rig.send(opcode, node, &body).unwrap_or_else(|errno| panic!("{what}: then {errno}"));
    errno
}

fn host_calls(number: usize) -> u64 {
    let rig = Rig::new();
    let (operation, opcode, node, body) = rig.operations().swap_remove(number);
    rig.kernel.tree.refuse_nothing();
    rig.send(opcode, node, &body).unwrap_or_else(|errno| panic!("{operation}: {errno}"));
    rig.kernel.tree.refuse_nothing()
}

// rule: each error of each call to the host is reported to a mount's kernel as its errno
// kept in: `product/fuse/src/reply.rs`
#[test]
fn each_error_of_each_call_to_the_host_is_told_by_its_number() {
    for (number, (operation, ..)) in Rig::new().operations().into_iter().enumerate() {
        let host_calls = host_calls(number);
        for (error, own) in table() {
            let told: BTreeSet<i32> = (0..host_calls).map(|at| fail_once(number, at, &error)).collect();
            let is_own = match (operation, &error) {
                // A name that was taken meanwhile is looked up. It is gone again.
                ("CREATE", VolumeError::Exists) => told == BTreeSet::from([2]),
                // Bytes are copied that cannot be shared.
                ("COPY_FILE_RANGE", _) => told.iter().all(|errno| [0, own].contains(errno)),
                _ => host_calls == 0 || (told.contains(&own) && told.iter().all(|errno| [0, own].contains(errno))),
            };
            assert!(is_own, "{operation}, {error:?}: {told:?}, not {own}");
        }
    }
}

#[test]
fn each_error_of_a_disk_is_told_to_reads_and_syncs() {
    for (error, own) in device_errors() {
        for (name, target) in [("READ", FaultTarget::Read), ("FSYNC", FaultTarget::Any)] {
            let rig = Rig::new();
            let operations = rig.operations();
            let (_, opcode, node, body) = operations.iter().find(|(operation, ..)| *operation == name).unwrap();
            if name == "FSYNC" {
                rig.kernel.write(rig.fh, 0, &[7; 4096]).unwrap();
            }
            let before = rig.holds();
            rig.kernel.disk.add_fault(Fault::always(target, FaultWhat::Error(error)));
            assert_eq!(rig.send(*opcode, *node, body), Err(own), "{name}, {error:?}");
            rig.kernel.disk.clear_faults();
            assert_eq!(rig.holds(), before, "{name}, {error:?}");
            rig.send(*opcode, *node, body).unwrap_or_else(|errno| panic!("{name}, {error:?}: then {errno}"));
        }
    }
}
