//! Files beside those of an initrd.
//!
//! The kernel unpacks several archives in a row. A later file replaces an earlier one of the same name.
//!
//! Owns: the format, cpio's "newc". Does not own: the files.
//! Invariants: an archive begins at a multiple of four bytes.

/// Appends programs, each a name in the root and its bytes, to an initrd.
pub(super) fn append(initrd: &mut Vec<u8>, programs: &[(&str, Vec<u8>)]) {
    pad(initrd);
    for (name, bytes) in programs {
        entry(initrd, name, bytes, 0o100_755);
    }
    entry(initrd, "TRAILER!!!", &[], 0);
}

fn entry(archive: &mut Vec<u8>, name: &str, bytes: &[u8], mode: usize) {
    // Inode, mode, owner, group, links, time, size, four numbers of devices, the name's bytes with its end, no
    // checksum.
    let fields = [0, mode, 0, 0, 1, 0, bytes.len(), 0, 0, 0, 0, name.len() + 1, 0];
    archive.extend_from_slice(b"070701");
    fields.iter().for_each(|field| archive.extend_from_slice(format!("{field:08X}").as_bytes()));
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    pad(archive);
    archive.extend_from_slice(bytes);
    pad(archive);
}

fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests;
