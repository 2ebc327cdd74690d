use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use super::{bind_at, prepare, running};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("afflux-place-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_socket_is_for_its_user_alone_and_a_stale_one_is_replaced() {
    let scratch = Scratch::new("stale");
    let path = scratch.0.join("a.sock");
    drop(bind_at(&path).unwrap());
    assert!(path.exists(), "dropping a listener leaves its socket");
    let again = bind_at(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let refused = bind_at(&path).unwrap_err().to_string();
    assert!(refused.contains("another server answers"), "{refused}");
    drop(again);
}

#[test]
fn a_file_in_the_socket_s_place_is_left_alone() {
    let scratch = Scratch::new("file");
    let path = scratch.0.join("a.sock");
    fs::write(&path, "precious").unwrap();
    let refused = bind_at(&path).unwrap_err().to_string();
    assert!(refused.contains("there is a file"), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn a_directory_that_others_could_have_made_is_refused() {
    let scratch = Scratch::new("directory");
    let open = scratch.0.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(prepare(&open).is_err());
    let link = scratch.0.join("link");
    symlink(&scratch.0, &link).unwrap();
    assert!(prepare(&link).is_err());
    let made = scratch.0.join("made");
    assert_eq!(prepare(&made), Ok(()));
    assert_eq!(prepare(&made), Ok(()));
}

#[test]
fn running_servers_are_found_and_stale_sockets_swept() {
    let scratch = Scratch::new("running");
    let live = scratch.0.join("live.sock");
    let _listener = UnixListener::bind(&live).unwrap();
    let dead = scratch.0.join("dead.sock");
    drop(UnixListener::bind(&dead).unwrap());
    let other = scratch.0.join("other");
    drop(UnixListener::bind(&other).unwrap());
    let found = running(&[scratch.0.join("absent"), scratch.0.clone()]);
    assert_eq!(found, [live]);
    assert!(!dead.exists() && other.exists());
}
