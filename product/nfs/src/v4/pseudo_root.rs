//! The tree above the exports: one root for all, and the paths at which the host has them.
//!
//! Owns: its directories, their names, handles and attributes.
//! Does not own: the exports and all below them (the volume).
//! Invariants: no directory has the number 0. A name of an export wins over a path of the host. The root lists names of
//! exports alone, and does not list the way to a single export. A server with other exports tells another change
//! attribute, so clients look again. Handles of this tree are no secrets: every admitted caller may walk here.

use afflux_volume::{Attributes, Kind, Timestamp};

/// The first bytes of each handle here. The volume's have another version in the first byte.
const HANDLE_START: &[u8; 4] = b"\0afx";
/// The handle of a single export's root below itself, where a path of one name leads.
pub(super) const BY_PATH: &[u8] = b"\0afx by path";
/// The number of this tree as a file system.
const FILE_SYSTEM: u64 = 0x0061_6678;

/// The number of a directory here; the root has 0.
pub(super) type Node = u32;

/// The target of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Directory(Node),
    /// The export with this path.
    Export(String),
}

struct Directory {
    parent: Node,
    entries: Vec<(Vec<u8>, Target)>,
}

/// The tree.
pub(super) struct PseudoRoot {
    directories: Vec<Directory>,
    /// The only export is the root itself.
    single: Option<String>,
    /// Names in the root that are listed; the others are only found.
    listed: usize,
    /// The time of its last change.
    made: Timestamp,
}

impl PseudoRoot {
    /// Made at this time from the exports' paths ("/" for a single one), and pairs of a path of the host and an
    /// export's path.
    pub(super) fn new(exports: &[String], places: &[(Vec<u8>, String)], made: Timestamp) -> Self {
        let single = exports.first().filter(|path| exports.len() == 1 && *path == "/").cloned();
        let mut root = Directory { parent: 0, entries: Vec::new() };
        if single.is_none() {
            let named =
                |path: &String| (path.trim_start_matches('/').as_bytes().to_vec(), Target::Export(path.clone()));
            root.entries = exports.iter().map(named).collect();
        }
        let listed = root.entries.len();
        let mut tree = Self { directories: vec![root], single, listed, made };
        places.iter().for_each(|(path, export)| tree.add(path, export));
        tree
    }

    /// Adds the way to an export.
    fn add(&mut self, path: &[u8], export: &str) {
        let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        let Some((last, way)) = names.split_last() else { return };
        let mut at = 0;
        for name in way {
            at = match self.find(at, name) {
                Some(Target::Directory(next)) => *next,
                Some(Target::Export(_)) => return,
                None => {
                    let next = self.directories.len() as Node;
                    self.directories.push(Directory { parent: at, entries: Vec::new() });
                    self.directories[at as usize].entries.push((name.to_vec(), Target::Directory(next)));
                    next
                }
            };
        }
        if self.find(at, last).is_none() {
            self.directories[at as usize].entries.push((last.to_vec(), Target::Export(export.to_owned())));
        }
    }

    /// The export that is the root itself.
    pub(super) fn single(&self) -> Option<&str> {
        self.single.as_deref()
    }

    /// The target of a name.
    pub(super) fn find(&self, node: Node, name: &[u8]) -> Option<&Target> {
        let directory = self.directories.get(node as usize)?;
        directory.entries.iter().find(|(known, _)| known == name).map(|(_, target)| target)
    }

    /// The directory above; none above the root.
    pub(super) fn parent(&self, node: Node) -> Option<Node> {
        let directory = self.directories.get(node as usize)?;
        (node != 0).then_some(directory.parent)
    }

    /// The names that are listed, each with its number.
    pub(super) fn listed(&self, node: Node) -> impl Iterator<Item = (u64, &[u8], &Target)> {
        let directory = self.directories.get(node as usize);
        let entries = directory.map_or(&[][..], |directory| directory.entries.as_slice());
        // The way to a single export leads through it: a program that lists it would come to the export below itself.
        let count = if node == 0 || self.single.is_some() { self.listed } else { entries.len() };
        let numbered = entries.iter().enumerate().take(count);
        numbered.map(move |(at, (name, target))| (entry_number(node, at), name.as_slice(), target))
    }

    /// The handle of a directory.
    pub(super) fn handle(node: Node) -> [u8; 8] {
        let mut handle = [0; 8];
        handle[..4].copy_from_slice(HANDLE_START);
        handle[4..].copy_from_slice(&node.to_be_bytes());
        handle
    }

    /// The directory with a handle.
    pub(super) fn resolve(&self, handle: &[u8]) -> Option<Node> {
        let node = handle.strip_prefix(HANDLE_START)?.try_into().ok().map(u32::from_be_bytes)?;
        ((node as usize) < self.directories.len()).then_some(node)
    }

    /// The attributes of a directory.
    pub(super) fn attributes(&self, node: Node) -> Attributes {
        let made = self.made;
        Attributes {
            kind: Kind::Directory,
            mode: 0o555,
            links: 2,
            uid: 0,
            gid: 0,
            size: 4096,
            used: 0,
            device_major: 0,
            device_minor: 0,
            fsid: FILE_SYSTEM,
            fileid: u64::from(node) + 1,
            atime: made,
            mtime: made,
            ctime: made,
        }
    }
}

/// A number for the place of an entry, which is no number of a directory here.
fn entry_number(node: Node, at: usize) -> u64 {
    (u64::from(node) + 1) << 32 | (at as u64 + 1)
}

#[cfg(test)]
mod tests;
