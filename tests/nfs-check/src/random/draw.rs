//! Draws operations.
//!
//! Owns: the frequencies of operations, their offsets in a file.
//! Does not own: the generator of numbers (`splitmix`), the checks of answers.
//! Invariants: a call that uses a name is drawn only for a file without a name in use. A file is replaced after
//! [`CHANGES_MAX`] changes, so that a run of any length needs bounded space.

use afflux_nfs_client::{Call, stable_how};

use super::exercise::Exercise;

/// A file is replaced after this many changes, or when as many as the second constant may still take effect at any
/// time.
const CHANGES_MAX: u32 = 250;
const ABANDONED_MAX: u32 = 30;
impl Exercise {
    /// An operation and its file; `None` if the drawn operation is not possible now.
    pub(super) fn draw(&mut self) -> Option<(Call, usize)> {
        let at = self.random.below(self.files.len() as u64) as usize;
        let file = &self.files[at];
        if file.naming {
            return None;
        }
        let Some(handle) = file.handle.clone() else {
            return self.draw_creation(at);
        };
        if file.changes >= CHANGES_MAX || file.abandoned >= ABANDONED_MAX {
            return self.draw_removal(at);
        }
        let (offset, len) = self.draw_range();
        let call = match self.random.below(100) {
            0..36 => {
                self.versions += 1;
                let mut data = vec![0; len as usize];
                afflux_reference::pattern(self.versions, offset, &mut data);
                let stability = match self.random.below(16) {
                    0 => stable_how::FILE_SYNC,
                    1 => stable_how::DATA_SYNC,
                    _ => stable_how::UNSTABLE,
                };
                Call::Write { file: handle, offset, data, stability }
            }
            36..72 => Call::Read { file: handle, offset, count: len as u32 },
            72..80 => Call::SetSize { object: handle, size: self.random.below(self.plan.file_bytes_max) },
            80..86 => Call::Commit { file: handle },
            86..92 => Call::GetAttributes { object: handle },
            92..95 => Call::SetMode { object: handle, mode: 0o600 | self.random.below(0o100) as u32 },
            95 if self.listing.is_none() => {
                // If a file's name is in use, its count changes once more when that call is answered.
                self.listing = Some(self.files.iter().map(|file| file.named).collect());
                let directory = self.root.clone();
                Call::List { directory, cookie: 0, verifier: [0; 8], bytes: 32 << 10 }
            }
            _ => return self.draw_name(at),
        };
        Some((call, at))
    }

    /// Mostly random ranges, sometimes at the edges of pages, so that neighbours meet.
    fn draw_range(&mut self) -> (u64, u64) {
        const PAGE: u64 = 4096;
        let mut offset = self.random.below(self.plan.file_bytes_max);
        let mut len = 1 + self.random.below(self.plan.call_bytes_max);
        match self.random.below(8) {
            0 => offset -= offset % PAGE,
            1 => (offset, len) = (offset - offset % PAGE, len.next_multiple_of(PAGE)),
            2 => len = 1 + len % 600,
            _ => {}
        }
        let len = len.min(self.plan.file_bytes_max - offset).min(self.plan.call_bytes_max).max(1);
        (offset, len)
    }

    fn draw_creation(&mut self, at: usize) -> Option<(Call, usize)> {
        let file = &mut self.files[at];
        if file.busy > 0 {
            return None;
        }
        file.use_name();
        let name = file.new_name();
        Some((Call::Create { directory: self.root.clone(), name: name.into_bytes() }, at))
    }

    /// Removes a name of a file that is being replaced; names go one by one.
    fn draw_removal(&mut self, at: usize) -> Option<(Call, usize)> {
        let file = &mut self.files[at];
        if file.busy > 0 {
            return None;
        }
        file.use_name();
        let name = file.names.last()?.clone().into_bytes();
        Some((Call::Remove { directory: self.root.clone(), name }, at))
    }

    fn draw_name(&mut self, at: usize) -> Option<(Call, usize)> {
        let (root, what) = (self.root.clone(), self.random.below(4));
        let file = &mut self.files[at];
        let (handle, old) = (file.handle.clone()?, file.names.last()?.clone().into_bytes());
        let call = match what {
            0 => Call::Lookup { directory: root, name: old },
            1 => Call::Rename { from: (root.clone(), old), to: (root, file.new_name().into_bytes()) },
            2 if file.names.len() < 3 => {
                Call::Link { file: handle, directory: root, name: file.new_name().into_bytes() }
            }
            3 if file.names.len() > 1 => Call::Remove { directory: root, name: old },
            _ => return None,
        };
        file.use_name();
        Some((call, at))
    }
}
