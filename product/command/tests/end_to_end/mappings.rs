//! Shared mappings on a mount, and the ends of their files.
//!
//! rule: bytes that a mapping has stored past a file's end are zeros once WRITE, FALLOCATE or COPY_FILE_RANGE has made
//! the file larger

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::mounted::{Mounted, apart, can_mount};
use crate::scratch::Scratch;

/// Stores bytes past the end of a file in its last page, and makes the file larger, once by each method. Prints the
/// files with such bytes. Where the kernel maps no files of the mount for writing, prints so.
const STORES: &str = "import mmap, os
source = os.open('source', os.O_RDWR | os.O_CREAT)
os.write(source, b'copied')
ways = {
    'behind': lambda file: os.pwrite(file, b'x', 5000),
    'further behind': lambda file: os.pwrite(file, b'x', 9000),
    'in the page': lambda file: os.pwrite(file, b'x', 300),
    'reserved': lambda file: os.posix_fallocate(file, 0, 4096),
    'reserved behind': lambda file: os.posix_fallocate(file, 4096, 4096),
    'copied': lambda file: os.copy_file_range(source, file, 6, 0, 5000),
}
for name, grow in ways.items():
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    # Python maps no more than the file has.
    os.ftruncate(file, 4096)
    try:
        mapped = mmap.mmap(file, 4096)
    except OSError:
        print('no mappings')
        break
    os.ftruncate(file, 100)
    mapped[200:250] = b'X' * 50
    grow(file)
    seen = [os.pread(file, 4096, 0), mapped[:min(4096, os.fstat(file).st_size)]]
    os.fsync(file)
    mapped.close()
    os.close(file)
    file = os.open(name, os.O_RDONLY)
    seen.append(os.read(file, 4096))
    if any(b'X' in bytes for bytes in seen):
        print(name)
";

/// The names of the files that show stored bytes.
fn stored(at: &Path) -> Option<String> {
    let output = match Command::new("python3").args(["-c", STORES]).current_dir(at).output() {
        Ok(output) => output,
        Err(_) => {
            afflux_scratch::skipped!("python3 is not installed");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    if said.starts_with("no mappings") {
        afflux_scratch::skipped!("this kernel maps no file of a mount for writing (Linux 6.6 does)");
        return None;
    }
    Some(said)
}

#[cfg(feature = "object")]
#[test]
fn stores_past_the_end_are_in_no_larger_file_of_a_volume_in_a_store() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (store, point) = (format!("file://{}", scratch.directory("store").display()), scratch.directory("point"));
    let mounted = Mounted::start(scratch.path(), Path::new(&store), &point);
    let Some(shown) = stored(&point) else { return };
    assert_eq!(shown, "");
    mounted.stop();
    let mounted = Mounted::start(scratch.path(), Path::new(&store), &point);
    for file in fs::read_dir(&point).unwrap() {
        let path = file.unwrap().path();
        assert!(!fs::read(&path).unwrap().contains(&b'X'), "{path:?}");
    }
    mounted.stop();
}

#[test]
fn stores_past_the_end_are_in_no_larger_file() {
    for flags in [&[][..], &["--kernel-cache"]] {
        if !can_mount() {
            return;
        }
        let scratch = Scratch::new();
        let (data, point) = apart(&scratch);
        let mounted = Mounted::start_with(scratch.path(), &data, &point, flags);
        let Some(shown) = stored(&point) else { return };
        assert_eq!(shown, "", "{flags:?}");
        mounted.stop();
        for file in fs::read_dir(&data).unwrap() {
            let path = file.unwrap().path();
            assert!(!fs::read(&path).unwrap().contains(&b'X'), "{flags:?}: {path:?}");
        }
    }
}
