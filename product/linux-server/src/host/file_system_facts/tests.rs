use rustix::fs::makedev;

use super::*;
use afflux_scratch::TestDirectory as Scratch;

const UUID: [u8; 16] = [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8];

#[test]
fn a_number_of_a_device_is_no_digest() {
    for device in [makedev(7, 0), makedev(259, 3), makedev(0xfff, 0xf_ffff)] {
        assert!(!is_digest((device & 0xffff_ffff) ^ (device >> 32)), "{device:x}");
    }
    assert!(!is_digest(0) && !is_digest(u64::from(u32::MAX)) && is_digest(1 << 32));
}

/// The answer of the call and that of udev give one id.
#[test]
fn udev_tells_the_uuid_as_the_call_does() {
    let scratch = Scratch::new();
    let entry = scratch.path().join("b8:1");
    let told = |text: &str| {
        fs::write(&entry, text).unwrap();
        uuid_of_udev(scratch.path(), DeviceKey(makedev(8, 1)))
    };
    let whole =
        "S:disk/by-id/x\nE:ID_FS_UUID_ENC=no\nE:ID_FS_UUID=10325476-98ba-dcfe-0102-030405060708\nE:ID_FS_TYPE=xfs\n";
    assert_eq!(told(whole).unwrap(), UUID);
    assert_eq!(told("E:ID_FS_UUID=ABCD-1234").unwrap(), [0x34, 0x12, 0xcd, 0xab], "a FAT");
    assert_eq!(told("E:ID_FS_UUID=2024-01-02-03-04-05-00").unwrap(), b"2024-01-02-03-04-05-00", "a disc");
    assert_eq!(told("E:ID_FS_UUID=01D9A8B7C6E5F403").unwrap(), b"01d9a8b7c6e5f403", "an NTFS");
    assert_eq!(told("E:ID_FS_LABEL=x"), None);
    assert_eq!(uuid_of_udev(scratch.path(), DeviceKey(makedev(8, 2))), None);
}

#[test]
fn a_whole_uuid_has_the_kernels_digest_and_a_short_one_counts_with_the_size() {
    let digest = 0xfedc_ba98_7654_3210 ^ 0x0807_0605_0403_0201;
    assert_eq!((id_of_uuid(&UUID, 1), id_of_uuid(&UUID, 2)), (Some(digest), Some(digest)));
    let short = |uuid: [u8; 4], bytes| id_of_uuid(&uuid, bytes).unwrap();
    assert_eq!(short([1, 2, 3, 4], 5), short([1, 2, 3, 4], 5));
    assert_ne!(short([1, 2, 3, 4], 5), short([1, 2, 3, 4], 6));
    assert_ne!(short([1, 2, 3, 4], 5), short([1, 2, 3, 5], 5));
    for unset in [&[][..], &[0; 4], &[0; 16], b"0000-0000"] {
        assert_eq!(id_of_uuid(unset, 1), None, "{unset:?}");
    }
}

#[test]
fn a_mount_is_found_by_its_number() {
    let table = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        40 22 0:45 / /nfs rw,relatime shared:2 master:1 - nfs4 host:/export rw,vers=4.2\n";
    let found = |mount| kind_and_source(table, mount);
    assert_eq!(found(40), Some((b"nfs4".to_vec(), b"host:/export".to_vec())));
    assert_eq!(found(22), Some((b"ext4".to_vec(), b"/dev/sda1".to_vec())));
    assert_eq!(found(4), None);
}

#[test]
fn a_partition_has_the_sequence_of_its_disk() {
    let scratch = Scratch::new();
    let disk = scratch.path().join("devices/sda");
    fs::create_dir_all(disk.join("sda1")).unwrap();
    fs::write(disk.join("diskseq"), "17\n").unwrap();
    let numbers = scratch.path().join("numbers");
    fs::create_dir(&numbers).unwrap();
    for (number, target) in [("8:0", disk.clone()), ("8:1", disk.join("sda1"))] {
        std::os::unix::fs::symlink(target, numbers.join(number)).unwrap();
    }
    let sequence = |minor| disk_sequence(&numbers, DeviceKey(makedev(8, minor)));
    assert_eq!((sequence(0), sequence(1)), (Some("17\n".to_owned()), Some("17\n".to_owned())));
    assert_eq!(sequence(2), None);
}

#[test]
fn an_id_of_a_stay_is_the_same_while_the_host_knows_the_stay() {
    let proc = fs::File::open("/proc/self/status").unwrap();
    let id = |device| of_stay(DeviceKey(device), std::os::fd::AsFd::as_fd(&proc));
    assert_eq!(id(makedev(0, 5)), id(makedev(0, 5)));
    assert_ne!(id(makedev(0, 5)), id(makedev(0, 6)));
    let unknown = makedev(0xffe, 0xf_fffe);
    assert_ne!(id(unknown), id(unknown), "the host does not know it: nothing lasts");
}
