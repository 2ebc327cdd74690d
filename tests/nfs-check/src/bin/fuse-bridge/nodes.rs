//! The kernel's numbers of objects.
//!
//! Owns: the numbers of handles, the kernel's references to each, objects removed while open.
//! Does not own: calls.
//! Invariants: a number belongs to one handle for as long as the kernel holds it.

use std::collections::HashMap;

use afflux_nfs_client::Handle;

/// The root's number.
pub(crate) const ROOT: u64 = 1;

/// One object that the kernel knows.
pub(crate) struct Node {
    pub(crate) handle: Handle,
    held: u64,
    /// The number of times that it is open.
    pub(crate) open: u64,
    /// Its new directory and name, if it was removed while open.
    pub(crate) removed: Option<(Handle, Vec<u8>)>,
    /// The verifier of uncommitted WRITEs.
    pub(crate) unstable: Option<[u8; 8]>,
}

pub(crate) struct Nodes {
    by_number: HashMap<u64, Node>,
    by_handle: HashMap<Handle, u64>,
    next: u64,
}

impl Nodes {
    pub(crate) fn new(root: Handle) -> Self {
        let mut nodes = Self { by_number: HashMap::new(), by_handle: HashMap::new(), next: ROOT };
        nodes.number(&root);
        nodes
    }

    /// The number of a handle, to which the kernel gets one more reference.
    pub(crate) fn number(&mut self, handle: &Handle) -> u64 {
        let next = self.next;
        let number = *self.by_handle.entry(handle.clone()).or_insert(next);
        if number == next {
            self.next += 1;
            let node = Node { handle: handle.clone(), held: 0, open: 0, removed: None, unstable: None };
            self.by_number.insert(number, node);
        }
        if let Some(node) = self.by_number.get_mut(&number) {
            node.held += 1;
        }
        number
    }

    /// The number of a handle that the kernel holds already.
    pub(crate) fn known(&self, handle: &Handle) -> Option<u64> {
        self.by_handle.get(handle).copied()
    }

    pub(crate) fn get(&mut self, number: u64) -> Option<&mut Node> {
        self.by_number.get_mut(&number)
    }

    /// The kernel drops this many references to a number.
    pub(crate) fn forget(&mut self, number: u64, times: u64) {
        let Some(node) = self.by_number.get_mut(&number) else { return };
        node.held = node.held.saturating_sub(times);
        if node.held == 0 && number != ROOT {
            let handle = std::mem::take(&mut node.handle);
            self.by_number.remove(&number);
            self.by_handle.remove(&handle);
        }
    }
}
