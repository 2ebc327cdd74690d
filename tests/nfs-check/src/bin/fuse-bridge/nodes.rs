//! What the kernel knows objects by.
//!
//! Owns: the numbers given to handles, how often the kernel holds one, what is open and removed.
//! Does not own: calls.
//! Invariants: a number is one handle's for as long as the kernel holds it.

use std::collections::HashMap;

use afflux_nfs_client::Handle;

/// The root's number.
pub(crate) const ROOT: u64 = 1;

/// One object that the kernel knows.
pub(crate) struct Node {
    pub(crate) handle: Handle,
    held: u64,
    /// How often it is open.
    pub(crate) open: u64,
    /// Where it was put when it was removed while open: directory and name.
    pub(crate) removed: Option<(Handle, Vec<u8>)>,
    /// The verifier of WRITEs that are not committed.
    pub(crate) unstable: Option<[u8; 8]>,
}

/// All of them.
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

    /// The number of a handle, which the kernel then holds once more.
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

    /// The kernel lets go of a number so many times.
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
