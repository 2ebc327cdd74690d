//! A call of each procedure that succeeds, and the form of the procedure's failures.

use nfs3_types::nfs3::*;
use nfs3_types::xdr_codec::{Opaque, Unpack};

use crate::rig::{Rig, packed, results, status_of};

/// The objects that the calls are about.
pub(crate) struct Objects {
    root: nfs_fh3,
    directory: nfs_fh3,
    file: nfs_fh3,
    link: nfs_fh3,
}

const BYTES: usize = 5000;

fn place<'a>(directory: &nfs_fh3, name: &'a [u8]) -> diropargs3<'a> {
    diropargs3 { dir: directory.clone(), name: name.into() }
}

/// The arguments of a WRITE at the start of a file.
pub(crate) fn written(file: &nfs_fh3, stable: stable_how, data: &[u8]) -> Vec<u8> {
    let data = Opaque::borrowed(data);
    packed(&WRITE3args { file: file.clone(), offset: 0, count: data.len() as u32, stable, data })
}

/// Makes `directory/inner`, `file`, `empty` and `link`.
pub(crate) fn make(rig: &mut Rig) -> Objects {
    let root = rig.mount(b"/");
    let (status, root) = root.split_first_chunk::<4>().unwrap();
    assert_eq!(*status, [0; 4]);
    let root = nfs_fh3 { data: Opaque::owned(Opaque::unpack(&mut &root[..]).unwrap().0.into_owned()) };
    let mut made = |procedure, arguments: Vec<u8>| {
        let record = rig.nfs_record(procedure, &arguments);
        let reply = rig.reply_to(&record);
        assert_eq!(status_of(results(&reply)), nfsstat3::NFS3_OK, "{procedure}");
        post_op_fh3::unpack(&mut &results(&reply)[4..]).unwrap().0.unwrap()
    };
    let attributes = sattr3::default;
    let directory = made(9, packed(&MKDIR3args { where_: place(&root, b"directory"), attributes: attributes() }));
    made(9, packed(&MKDIR3args { where_: place(&root, b"empty"), attributes: attributes() }));
    let how = || createhow3::GUARDED(sattr3::default());
    let file = made(8, packed(&CREATE3args { where_: place(&root, b"file"), how: how() }));
    made(8, packed(&CREATE3args { where_: place(&directory, b"inner"), how: how() }));
    let symlink = symlinkdata3 { symlink_attributes: attributes(), symlink_data: b"file"[..].into() };
    let link = made(10, packed(&SYMLINK3args { where_: place(&root, b"link"), symlink }));
    let written = rig.call(7, &written(&file, stable_how::FILE_SYNC, &[1; BYTES]));
    assert_eq!(status_of(&written), nfsstat3::NFS3_OK);
    Objects { root, directory, file, link }
}

/// A procedure's call on the objects.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) procedure: u32,
    pub(crate) arguments: Vec<u8>,
    /// The objects whose attributes a failure has, without those before it.
    pub(crate) attributes: Vec<nfs_fh3>,
    /// The objects whose attributes a failure has from before and after.
    pub(crate) changes: Vec<nfs_fh3>,
}

/// Calls of all procedures that have results.
pub(crate) fn all(objects: &Objects) -> Vec<Call> {
    let Objects { root, directory, file, link } = objects;
    let about = |name, procedure, arguments, attributes: &[&nfs_fh3], changes: &[&nfs_fh3]| Call {
        name,
        procedure,
        arguments,
        attributes: attributes.iter().map(|object| (*object).clone()).collect(),
        changes: changes.iter().map(|object| (*object).clone()).collect(),
    };
    let mode = sattr3 { mode: set_mode3::Some(0o600), ..sattr3::default() };
    let size = sattr3 { size: set_size3::Some(100), ..sattr3::default() };
    let set = |object: &nfs_fh3, new_attributes| {
        packed(&SETATTR3args { object: object.clone(), new_attributes, guard: sattrguard3::None })
    };
    let attributes = sattr3::default;
    let symlink = symlinkdata3 { symlink_attributes: attributes(), symlink_data: b"target"[..].into() };
    let (cookie, cookieverf) = (0, cookieverf3::default());
    let (dir, object) = (root.clone(), file.clone());
    vec![
        about("GETATTR", 1, packed(&GETATTR3args { object }), &[], &[]),
        about("SETATTR of a mode", 2, set(directory, mode), &[], &[directory]),
        about("SETATTR of a size", 2, set(file, size), &[], &[file]),
        about("LOOKUP", 3, packed(&LOOKUP3args { what: place(directory, b"inner") }), &[directory], &[]),
        about("ACCESS", 4, packed(&ACCESS3args { object: file.clone(), access: 0x3f }), &[file], &[]),
        about("READLINK", 5, packed(&READLINK3args { symlink: link.clone() }), &[link], &[]),
        about("READ", 6, packed(&READ3args { file: file.clone(), offset: 0, count: 9000 }), &[file], &[]),
        about("WRITE", 7, written(file, stable_how::UNSTABLE, &[2; 100]), &[], &[file]),
        about("WRITE that is stable", 7, written(file, stable_how::FILE_SYNC, &[2; 8192]), &[], &[file]),
        about(
            "CREATE",
            8,
            packed(&CREATE3args { where_: place(directory, b"new"), how: createhow3::UNCHECKED(attributes()) }),
            &[],
            &[directory],
        ),
        about(
            "CREATE that is exclusive",
            8,
            packed(&CREATE3args { where_: place(directory, b"new"), how: createhow3::EXCLUSIVE(createverf3([5; 8])) }),
            &[],
            &[directory],
        ),
        about(
            "MKDIR",
            9,
            packed(&MKDIR3args { where_: place(directory, b"new"), attributes: attributes() }),
            &[],
            &[directory],
        ),
        about("SYMLINK", 10, packed(&SYMLINK3args { where_: place(directory, b"new"), symlink }), &[], &[directory]),
        about(
            "MKNOD",
            11,
            packed(&MKNOD3args { where_: place(directory, b"new"), what: mknoddata3::NF3FIFO(attributes()) }),
            &[],
            &[directory],
        ),
        about("REMOVE", 12, packed(&REMOVE3args { object: place(directory, b"inner") }), &[], &[directory]),
        about("RMDIR", 13, packed(&RMDIR3args { object: place(root, b"empty") }), &[], &[root]),
        about(
            "RENAME",
            14,
            packed(&RENAME3args { from: place(root, b"file"), to: place(directory, b"new") }),
            &[],
            &[root, directory],
        ),
        about(
            "LINK",
            15,
            packed(&LINK3args { file: file.clone(), link: place(directory, b"new") }),
            &[file],
            &[directory],
        ),
        about("READDIR", 16, packed(&READDIR3args { dir, cookie, cookieverf, count: 4096 }), &[root], &[]),
        about(
            "READDIRPLUS",
            17,
            packed(&READDIRPLUS3args { dir: root.clone(), cookie, cookieverf, dircount: 4096, maxcount: 8192 }),
            &[root],
            &[],
        ),
        about("FSSTAT", 18, packed(&FSSTAT3args { fsroot: root.clone() }), &[root], &[]),
        about("FSINFO", 19, packed(&FSINFO3args { fsroot: root.clone() }), &[root], &[]),
        about("PATHCONF", 20, packed(&PATHCONF3args { object: file.clone() }), &[file], &[]),
        about("COMMIT", 21, packed(&COMMIT3args { file: file.clone(), offset: 0, count: 0 }), &[], &[file]),
    ]
}

/// The attributes in the results of a call that failed, in their order.
pub(crate) struct FailureBody {
    pub(crate) attributes: Vec<post_op_attr>,
    pub(crate) changes: Vec<wcc_data>,
}

impl Call {
    /// Whether the server keeps the reply for a client that sends the call again.
    pub(crate) fn needs_cached_reply(&self) -> bool {
        [2, 9, 10, 11, 12, 13, 14, 15].contains(&self.procedure) || self.name == "CREATE"
    }

    /// Reads the results of a failure, all of them.
    pub(crate) fn failure_body(&self, results: &[u8]) -> FailureBody {
        let mut rest = &results[4..];
        let attributes = self.attributes.iter().map(|_| post_op_attr::unpack(&mut rest).unwrap().0).collect();
        let changes = self.changes.iter().map(|_| wcc_data::unpack(&mut rest).unwrap().0).collect();
        assert!(rest.is_empty(), "{} bytes after the results", rest.len());
        FailureBody { attributes, changes }
    }
}
