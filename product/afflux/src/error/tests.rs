use std::io::{self, ErrorKind};
use std::time::Duration;

use afflux_engine::DeviceError;

use super::{Error, Unwritten, UnwrittenFile};

#[test]
fn an_error_keeps_its_kind_its_text_and_itself() {
    let device = |error| Error::Device { path: "/data/table".into(), error };
    let table = [
        (Error::Closed, ErrorKind::NotConnected, "closed"),
        (Error::Forked, ErrorKind::Unsupported, "parent"),
        (Error::WaitInside, ErrorKind::Deadlock, "async form"),
        (device(DeviceError::NoSpace), ErrorKind::StorageFull, "/data/table: no space"),
        (device(DeviceError::Hung), ErrorKind::TimedOut, "hang_error_ms"),
        (device(DeviceError::Io { errno: 13 }), ErrorKind::PermissionDenied, "errno 13"),
        (device(DeviceError::Io { errno: 0 }), ErrorKind::Other, "/data/table"),
        (Error::InUse { path: "/x".into(), writing: false }, ErrorKind::ResourceBusy, "/x: another cache"),
        (Error::Host { path: "/x".into(), errno: 40 }, io::Error::from_raw_os_error(40).kind(), "/x: Too many levels"),
        (Error::Start { what: "no ring".into(), errno: None }, ErrorKind::Unsupported, "no ring"),
        (Error::Start { what: "no thread".into(), errno: Some(11) }, ErrorKind::OutOfMemory, "no thread"),
        (Error::Range { path: "/x".into(), from: 5, to: 3, max: 9 }, ErrorKind::InvalidInput, "5..3"),
        (Error::Range { path: "/x".into(), from: 5, to: 30, max: 9 }, ErrorKind::FileTooLarge, "9 bytes"),
    ];
    for (error, kind, text) in table {
        let told = io::Error::from(error.clone());
        assert_eq!(told.kind(), kind, "{error:?}");
        assert!(told.to_string().contains(text), "{told}");
        assert_eq!(format!("{:?}", Error::of(&told)), format!("{:?}", Some(&error)));
    }
    assert!(Error::of(&io::Error::from(ErrorKind::WouldBlock)).is_none());
}

#[test]
fn what_was_not_written_is_told_file_by_file() {
    let file = |path: &str, bytes, error: Option<&str>| UnwrittenFile {
        path: path.into(),
        bytes,
        error: error.map(str::to_owned),
    };
    let mut unwritten = Unwritten {
        files: vec![file("/a", 4096, Some("no space left on the device")), file("/b", 8192, None)],
        panic: None,
        still_in_flight: true,
        time: Duration::from_secs(5),
    };
    let text = unwritten.to_string();
    for part in ["12288 bytes of 2 files", "/a: 4096 bytes: no space", "/b: 8192 bytes: no time", "with the kernel"] {
        assert!(text.contains(part), "{text}");
    }
    unwritten.files = vec![file("/b", 8192, None)];
    assert!(unwritten.to_string().contains("1 file could not be written within 5s"), "{unwritten}");
    unwritten.files = (0..20).map(|number| file(&format!("/{number}"), 1, None)).collect();
    assert!(unwritten.to_string().ends_with("and 12 more"), "{unwritten}");
}
