//! Bringing back files that the engine's memory has from an earlier process.
//!
//! Owns: the moment of such a file's opening, the attributes of its object, the end of files that are gone.
//! Does not own: which files wait (`objects::found_files`), their pages (the engine's `adopt`).
//! Invariants: no caller sees the object of a found file before the engine has its dirty pages and its size. A file's
//! pages are dropped only if the file is gone from the host. A clean file that cannot be opened for writing is
//! forgotten: its next opening flushes at the first sync.

use std::sync::Arc;

use afflux_engine::Platform;
use futures_util::future::join_all;

use crate::error::VolumeError;
use crate::objects::found_files::PendingFile;
use crate::objects::inode::Inode;
use crate::tree::directory::Found;
use crate::tree::identity::Identity;
use crate::volume::{STOPPED, Volume};

/// Files that are opened at the same time.
const AT_A_TIME: usize = 32;

/// The outcome for files of an earlier server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AdoptedFiles {
    /// Files that were opened again.
    pub files: u64,
    /// Bytes of them that are still to be written.
    pub dirty_bytes: u64,
    /// Files that are gone from the host. Their unwritten bytes were dropped.
    pub gone: u64,
    /// The first file that could not be opened, by its number on the host's file system, and the reason. It stays for
    /// another try.
    pub failed: Option<(String, VolumeError)>,
}

impl<P: Platform> Volume<P> {
    /// How many files of an earlier server are below no directory that is served now. While there are any, serve
    /// nothing: their unwritten bytes could not go home.
    pub fn found_elsewhere(&self) -> usize {
        let tags: Vec<u16> = self.exports.iter().map(|export| export.tag).collect();
        self.found_files.outside(&tags)
    }

    /// Opens all files that the engine's memory has from an earlier server, some at a time. Clients' calls open theirs
    /// before that. Waits for the host.
    pub async fn adopt_found(&self) -> AdoptedFiles {
        let mut adopted = AdoptedFiles::default();
        let found: Vec<_> = self.found_files.all().into_iter().collect();
        for files in found.chunks(AT_A_TIME) {
            let opened = files.iter().map(|(identity, file)| Box::pin(self.resolve_identity(*identity, file.export)));
            for ((identity, file), opened) in files.iter().zip(join_all(opened).await) {
                match opened {
                    Ok(inode) => {
                        adopted.files += 1;
                        adopted.dirty_bytes += inode.file().map_or(0, afflux_engine::File::dirty_bytes);
                    }
                    Err(VolumeError::Stale) => {
                        self.forget_found(identity, file).await;
                        adopted.gone += 1;
                    }
                    Err(error) => adopted.failed = adopted.failed.or_else(|| Some((format!("{identity:?}"), error))),
                }
            }
        }
        adopted
    }

    async fn forget_found(&self, identity: &Identity, file: &PendingFile) {
        let _turn = file.claim.lock().await;
        self.engine.try_forget_found(&file.key);
        self.found_files.remove(identity);
    }

    /// The object of a found file, with the pages and the size that it had. `None` if no earlier process had the file
    /// there, or if it is an object already. Completes even if the caller is dropped.
    pub(crate) async fn adopted(&self, found: &Found) -> Result<Option<Arc<Inode<P>>>, VolumeError> {
        let Some(file) = self.found_files.get(&found.identity) else { return Ok(None) };
        let Found { node, identity, stat } = found;
        let found = Found { node: node.clone(), identity: *identity, stat: *stat };
        let adopted = self.carried_through("adopt", |volume| async move { volume.adopt_file(found, &file).await });
        adopted.await.unwrap_or(Err(STOPPED))
    }

    async fn adopt_file(&self, found: Found, file: &PendingFile) -> Result<Option<Arc<Inode<P>>>, VolumeError> {
        let _turn = file.claim.lock().await;
        let Found { node, identity, .. } = found;
        if self.found_files.get(&identity).is_none() {
            return Ok(None);
        }
        let data = match self.open_data(&node, true).await {
            Ok(data) => data,
            Err(_) if !self.engine.is_owed(&file.key) => {
                self.engine.try_forget_found(&file.key);
                self.found_files.remove(&identity);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let device = self.device(data.stat.device, &node).await?;
        let adopted = self.engine.adopt(device, data.backing, &file.key, data.stat.size).await;
        let (inode, _) = self.inode_of(Found { node, identity, stat: data.stat }, file.export)?;
        if let Some(adopted) = adopted {
            inode.opened(adopted);
            inode.allow_writing();
            inode.came_back(self.wall());
            self.settle_later(&inode);
        }
        self.search.note_found(&identity);
        self.found_files.remove(&identity);
        Ok(Some(inode))
    }
}
