//! A directory of a local file system as a store whose objects only their owner can read.
//!
//! The store below makes files and folders that everybody may use, as far as the process's mask lets it. A server
//! clears its mask, since clients choose the modes of their files.
//!
//! Owns: the making of the directory, the lock that excludes other processes, the modes of files and folders, also of
//! those that were copied here.
//! Does not own: the bytes.
//! Invariants: the lock lives as long as the value; the host takes it from a dead process. A directory that the user
//! made retains its mode. A folder is private from its making on, so nobody reaches a file in it before the file is
//! private, too.

use std::fs::{self, DirBuilder, File, Permissions};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path as FilePath, PathBuf};
use std::{fmt, io};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use rustix::fs::{Access, FlockOperation, access, flock};

use crate::address::{DATA, PROBES, RECORDS};
use crate::error::StoreError;

/// A locked directory.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    #[expect(dead_code, reason = "the open file is the lock")]
    file: File,
    /// What others may do to the volume.
    pub(crate) warning: Option<String>,
}

/// Rights of others than the owner.
const OTHERS: u32 = 0o077;
/// The right of others to replace names.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

impl DirectoryLock {
    /// Finds what [`Self::take`] would refuse, and makes nothing. False for a directory that would be made.
    pub(crate) fn is_there(directory: &FilePath) -> Result<bool, StoreError> {
        let url = format!("file://{}", directory.display());
        let failed = |error: io::Error| StoreError::Settings { url, why: error.to_string() };
        let file = match File::open(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = directory.parent().unwrap_or(directory);
                let makeable = access(parent, Access::WRITE_OK | Access::EXEC_OK);
                return makeable.map(|()| false).map_err(|error| failed(error.into()));
            }
            opened => opened.map_err(failed)?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse { directory: directory.display().to_string() }),
            _ => Ok(true),
        }
    }

    /// Makes the directory if its parent is there, and locks it.
    pub(crate) fn take(directory: &FilePath) -> Result<Self, StoreError> {
        let url = || format!("file://{}", directory.display());
        let failed = |error: io::Error| StoreError::Settings { url: url(), why: error.to_string() };
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let file = File::open(directory).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { file, warning: close_folders(directory) }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse { directory: directory.display().to_string() }),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// Takes the rights of others from the folders of the volume, which may be a copy with other modes. Returns a warning
/// about what cannot be changed.
fn close_folders(directory: &FilePath) -> Option<String> {
    for folder in [RECORDS, DATA, PROBES] {
        let folder = directory.join(folder);
        let Ok(found) = fs::symlink_metadata(&folder) else { continue };
        let is_open = found.is_dir() && found.permissions().mode() & OTHERS != 0;
        if is_open && let Err(error) = fs::set_permissions(&folder, Permissions::from_mode(0o700)) {
            return Some(format!("other users may read {}, and its mode cannot be changed: {error}", folder.display()));
        }
    }
    let mode = fs::metadata(directory).ok()?.permissions().mode();
    let may_replace = mode & OTHERS_WRITE != 0 && mode & STICKY == 0;
    may_replace.then(|| {
        let directory = directory.display();
        format!("other users may replace the folders of the volume in {directory}: take their right to write, as by chmod go-w")
    })
}

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A directory with private objects.
#[derive(Debug)]
pub(crate) struct Private {
    files: LocalFileSystem,
    root: PathBuf,
}

impl Private {
    /// A store in a directory that is there.
    pub(crate) fn new(files: LocalFileSystem, directory: &FilePath) -> Result<Self> {
        let root = fs::canonicalize(directory).map_err(|error| failed(directory, error))?;
        Ok(Self { files, root })
    }

    /// The file of an object, in a private folder.
    fn file_path(&self, location: &Path) -> Result<PathBuf> {
        let file = self.files.path_to_filesystem(location)?;
        if let Some(folder) = file.parent() {
            self.make(folder).map_err(|error| failed(&file, error))?;
        }
        Ok(file)
    }

    /// Makes the missing folders, durably.
    fn make(&self, folder: &FilePath) -> io::Result<()> {
        let above = folder.ancestors().take_while(|above| above.starts_with(&self.root) && **above != self.root);
        let missing: Vec<&FilePath> = above.take_while(|above| !above.exists()).collect();
        for folder in missing.into_iter().rev() {
            match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => folder.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())?,
            }
        }
        Ok(())
    }
}

/// Makes a new file private. It may be gone again: another writer collects garbage.
fn close(file: &FilePath) -> Result<()> {
    match fs::set_permissions(file, Permissions::from_mode(FILE_MODE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(file, error)),
        _ => Ok(()),
    }
}

fn failed(file: &FilePath, error: io::Error) -> Error {
    let source = io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    Error::Generic { store: "LocalFileSystem", source: Box::new(source) }
}

impl fmt::Display for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Private {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let file = self.file_path(location)?;
        let made = self.files.put_opts(location, payload, options).await?;
        close(&file)?;
        Ok(made)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let file = self.file_path(location)?;
        let upload = self.files.put_multipart_opts(location, options).await?;
        Ok(Box::new(PrivateUpload { upload, file }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.files.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let file = self.file_path(to)?;
        self.files.copy_opts(from, to, options).await?;
        close(&file)
    }
}

/// A file that comes in parts.
#[derive(Debug)]
struct PrivateUpload {
    upload: Box<dyn MultipartUpload>,
    file: PathBuf,
}

#[async_trait]
impl MultipartUpload for PrivateUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.upload.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let made = self.upload.complete().await?;
        close(&self.file)?;
        Ok(made)
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}
