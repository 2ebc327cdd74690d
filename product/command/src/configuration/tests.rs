use std::ffi::OsString;
use std::path::{Path, PathBuf};

use afflux_engine::eviction::EvictionKind;
use afflux_nfs::Squash;
use tracing::level_filters::LevelFilter;

use super::{Configuration, Io, Layers, file_path};
use crate::args::Serve;
use crate::knobs;
use afflux_linux::HostMemory;
use afflux_report::failure::{Failure, Outcome};

const HOST: HostMemory = HostMemory { total_bytes: 8 << 30, available_bytes: 8 << 30 };

fn flags() -> Serve {
    Serve {
        directories: vec!["/srv".into()],
        check: false,
        listen: None,
        cache: None,
        control: None,
        knobs: Vec::new(),
        config: None,
        io: None,
        policy: None,
        readahead: None,
        eviction: None,
        prefault: None,
        lock_memory: None,
        log: None,
        metrics: None,
        state: None,
        shared: false,
        subtree_check: false,
        allow: Vec::new(),
        squash: None,
        anon: None,
        any_port: false,
        read_only: false,
        async_metadata: false,
        json: false,
    }
}

fn layered(file: &str, variables: &[(&str, &str)], flags: &Serve) -> Outcome<Configuration> {
    let variables: Vec<_> = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).into())).collect();
    let mut layers = Layers::default();
    layers.add_file(Path::new("/etc/afflux.toml"), file)?;
    layers.add_environment(&variables)?;
    layers.add_flags(flags)?;
    layers.checked(HOST)
}

fn wrong(file: &str, variables: &[(&str, &str)], flags: &Serve) -> String {
    match layered(file, variables, flags) {
        Err(Failure::WrongUse(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_given_is_the_defaults() {
    let found = layered("", &[], &flags()).unwrap();
    assert_eq!(found.listen.to_string(), "127.0.0.1:2049");
    assert_eq!((found.cache_bytes, found.io, found.control), (2 << 30, Io::Auto, None));
    assert!(found.knobs.is_empty());
    assert_eq!(found.eviction, EvictionKind::S3Window);
}

#[test]
fn figures_are_given_where_it_is_said_and_nowhere_else() {
    assert_eq!(layered("", &[], &flags()).unwrap().metrics, None);
    let found = layered("metrics = '127.0.0.1:9464'", &[("AFFLUX_METRICS", "[::1]:1")], &flags()).unwrap();
    assert_eq!(found.metrics.map(|address| address.to_string()), Some("[::1]:1".to_owned()));
    for nonsense in ["9464", "here", "127.0.0.1:70000", ""] {
        let told = wrong("", &[], &Serve { metrics: Some(nonsense.to_owned()), ..flags() });
        assert!(told.starts_with("--metrics") && told.contains("127.0.0.1:9464"), "{told}");
    }
}

#[test]
fn the_log_has_a_level_by_name() {
    assert_eq!(layered("", &[], &flags()).unwrap().log, LevelFilter::INFO);
    assert_eq!(layered("log = 'warn'", &[], &flags()).unwrap().log, LevelFilter::WARN);
    let told = wrong("", &[("AFFLUX_LOG", "7")], &flags());
    assert!(told.contains("AFFLUX_LOG") && told.contains("off, error, warn, info, debug, trace"), "{told}");
}

#[test]
fn eviction_goes_by_name() {
    let found = layered("eviction = 'sieve'", &[], &flags()).unwrap();
    assert_eq!(found.eviction, EvictionKind::Sieve);
    let told = wrong("", &[("AFFLUX_EVICTION", "lru")], &flags());
    assert!(told.contains("AFFLUX_EVICTION") && told.contains("two-list, s3-fifo, sieve, s3-window"), "{told}");
}

#[test]
fn flags_win_over_environment_over_file() {
    let file = "listen = '127.0.0.1:1'\ncache = '1GiB'\nio = 'uring'\n[knobs]\ndirty_ratio = 11\n\
        writeback_depth = 3\nreadahead_bytes_max = '2MiB'";
    let environment = [
        ("AFFLUX_LISTEN", "127.0.0.1:2"),
        ("AFFLUX_CACHE", "64MiB"),
        ("AFFLUX_DIRTY_RATIO", "22"),
        ("AFFLUX_WRITEBACK_DEPTH", "4"),
    ];
    let flags = Serve {
        listen: Some("[::1]:3".into()),
        knobs: vec!["dirty_ratio=32".into(), "dirty_ratio = 33".into()],
        ..flags()
    };
    let found = layered(file, &environment, &flags).unwrap();
    assert_eq!(found.listen.to_string(), "[::1]:3");
    assert_eq!((found.cache_bytes, found.io), (64 << 20, Io::Uring));
    assert_eq!(found.knobs, ["dirty_ratio= 33", "readahead_bytes_max=2MiB", "writeback_depth=4"]);
}

#[test]
fn an_unknown_name_is_an_error_that_names_place_name_and_the_allowed() {
    let text = wrong("cachee = 1", &[], &flags());
    assert_eq!(
        text,
        "/etc/afflux.toml: there is no setting 'cachee' (did you mean 'cache'?); allowed are listen, cache, allow, anon, any_port, async_metadata, control, directories, eviction, io, lock_memory, log, metrics, policy, prefault, read_only, readahead, shared, squash, state, subtree_check, knobs"
    );
    let text = wrong("[knobs]\ndirty = 1", &[], &flags());
    assert!(text.starts_with("/etc/afflux.toml: there is no knob 'dirty' (did you mean 'dirty_bytes', "), "{text}");
    let text = wrong("", &[], &Serve { knobs: vec!["dirty=1".into()], ..flags() });
    assert!(text.starts_with("--set: there is no knob 'dirty' (did you mean 'dirty_bytes', "), "{text}");
}

/// Kubernetes sets these variables for a service of that name.
#[test]
fn variables_that_nobody_knows_are_warned_of_and_those_that_are_known_are_checked() {
    let set = [
        ("AFFLUX_SERVICE_HOST", "10.0.0.1"),
        ("AFFLUX_PORT", "tcp://10.0.0.1:2049"),
        ("AFFLUX_CAHCE", "1"),
        ("AFFLUX_AFFLUX_CACHE", "1GiB"),
        ("AFFLUX_CACHE", "32MiB"),
    ];
    let found = layered("", &set, &flags()).unwrap();
    assert_eq!(found.cache_bytes, 32 << 20);
    let [warning] = &found.warnings[..] else { panic!("{:?}", found.warnings) };
    let wanted = "AFFLUX_SERVICE_HOST, AFFLUX_PORT (did you mean 'AFFLUX_ANY_PORT'?), AFFLUX_CAHCE (did you mean 'AFFLUX_CACHE'?), AFFLUX_AFFLUX_CACHE \
        are not settings and are ignored";
    assert!(warning.contains(wanted) && warning.contains("settings: AFFLUX_LISTEN, AFFLUX_CACHE, "), "{warning}");
    let odd = layered("", &[("AFFLUX_\x1b[2J", "")], &flags()).unwrap().warnings;
    assert!(odd[0].contains("AFFLUX_\\u001b[2J is not a setting and is ignored"), "{odd:?}");
    assert!(layered("", &[("AFFLUX_CONFIG", "x")], &flags()).unwrap().warnings.is_empty());
    for (name, value, range) in [("CACHE", "1MiB", "16.0 MiB to "), ("DIRTY_RATIO", "91", "1 to 90 percent")] {
        let name = format!("AFFLUX_{name}");
        let text = wrong("", &[(&name, value), ("AFFLUX_PORT", "1")], &flags());
        assert!(text.starts_with(&name) && text.contains(value) && text.contains(range), "{text}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_an_error_that_names_its_place() {
    assert!(wrong("cache = true", &[], &flags()).starts_with("/etc/afflux.toml: cache: "));
    assert!(wrong("knobs = 1", &[], &flags()).contains("'knobs' is not a table"));
    assert!(wrong("cache = ", &[], &flags()).starts_with("/etc/afflux.toml: TOML parse error at line 1"));
    assert!(wrong("prefault = 'yes'", &[], &flags()).contains("prefault: 'yes' is neither on nor off"));
    let off = layered("prefault = 'on'", &[("AFFLUX_PREFAULT", "off")], &flags()).unwrap();
    assert!(!off.prefault && layered("", &[], &flags()).unwrap().prefault);
    assert!(wrong("io = 'fast'", &[], &flags()).contains("'fast' is none of auto, uring, syscalls"));
    assert!(wrong("", &[("AFFLUX_IO", "")], &flags()).starts_with("AFFLUX_IO: ''"));
    let text = wrong("", &[], &Serve { knobs: vec!["dirty_ratio".into()], ..flags() });
    assert_eq!(text, "--set: 'dirty_ratio' is not KNOB=VALUE");
}

#[test]
fn who_is_answered_comes_from_all_sources() {
    let none = layered("", &[], &flags()).unwrap();
    assert_eq!((none.networks.len(), none.squash, none.anonymous), (0, Squash::Root, (65_534, 65_534)));
    let file = "allow = '192.0.2.0/24, 198.51.100.7=ro'\nsquash = 'all'\nanon = '7:8'";
    let found = layered(file, &[("AFFLUX_SQUASH", "none")], &flags()).unwrap();
    let shown: Vec<String> = found.networks.iter().map(ToString::to_string).collect();
    assert_eq!((&shown[..], found.squash), (&["192.0.2.0/24".into(), "198.51.100.7/32=ro".into()][..], Squash::None));
    assert_eq!(found.anonymous, (7, 8));
    let flags = || Serve { allow: vec!["::/0".into(), "0.0.0.0/0=ro".into()], ..flags() };
    let shown: Vec<String> = layered(file, &[], &flags()).unwrap().networks.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["::/0", "0.0.0.0/0=ro"]);
    assert!(
        wrong("allow = 'everybody'", &[], &Serve { allow: Vec::new(), ..flags() })
            .contains("allow: 'everybody' is no address or network")
    );
    assert!(wrong("squash = 'some'", &[], &flags()).contains("squash: 'some' is none of root, all, none"));
    for anon in ["7", "7:", ":", "x:8", "7:8:9", "4294967295:0", "-1:0"] {
        let text = wrong("", &[("AFFLUX_ANON", anon)], &flags());
        assert!(text.starts_with(&format!("AFFLUX_ANON: '{anon}' is not a user's and a group's number")), "{text}");
    }
}

#[test]
fn a_bad_address_is_told_with_the_value() {
    for listen in ["", "2049", "127.0.0.1", "127.0.0.1:65536", "localhost:x", "1.2.3:5", "::1:2049:"] {
        let text = wrong("", &[], &Serve { listen: Some(listen.into()), ..flags() });
        assert!(text.starts_with(&format!("--listen: '{listen}' is not an address")), "{text}");
    }
}

#[test]
fn nonsense_for_any_knob_is_told_with_value_and_range() {
    for (_, info) in knobs::of_server().all() {
        let above = (info.max + 1).to_string();
        let mut values = vec!["ten", "", "-1", "1e3", "18446744073709551616", above.as_str()];
        let below = info.min.checked_sub(1).map(|value| value.to_string());
        values.extend(below.as_deref());
        for value in values {
            let assignment = format!("{}={value}", info.name);
            let text = wrong("", &[], &Serve { knobs: vec![assignment.clone()], ..flags() });
            assert!(text.starts_with(&format!("--set: {}: ", info.name)), "{assignment}: {text}");
            assert!(text.contains(&info.range()), "{assignment}: {text}");
            assert!(text.contains(value), "{assignment}: {text}");
        }
    }
}

/// The file that the package installs, as shipped and with each of its lines enabled.
#[test]
fn the_example_that_is_installed_is_right() {
    let text = include_str!("../../../../packaging/config.toml");
    let none = Serve { directories: Vec::new(), ..flags() };
    let told = wrong(text, &[], &none);
    assert!(told.starts_with("no directory to serve: name one") && told.contains("'directories'"), "{told}");
    let is_setting = |line: &&str| line.starts_with('#') && !line.starts_with("# ") && *line != "#";
    let lines: Vec<&str> = text.lines().map(|line| if is_setting(&line) { &line[1..] } else { line }).collect();
    let found = layered(&lines.join("\n"), &[], &none).unwrap();
    assert_eq!(found.directories, [Path::new("/srv/share")]);
    assert_eq!((found.networks.len(), found.cache_bytes), (2, 2 << 30));
    assert_eq!(found.knobs, ["budget_ms=1000", "hang_error_ms=0"]);
    let settings = text.lines().filter(is_setting).count();
    assert_eq!(settings, found.given.len() + 1 + found.knobs.len(), "each line is read as a setting");
    // The defaults in its comments are true.
    let plain = layered("", &[], &flags()).unwrap();
    assert_eq!((found.listen, found.squash, found.anonymous), (plain.listen, plain.squash, plain.anonymous));
    assert_eq!((found.any_port, found.read_only, found.async_metadata), (false, false, false));
    for assignment in &found.knobs {
        let (knob, value) = assignment.split_once('=').unwrap();
        let settings = knobs::of_server();
        assert_eq!(settings.info(settings.named(knob).unwrap()).default.to_string(), value, "{knob}");
    }
}

#[test]
fn directories_come_from_all_sources_and_are_whole_paths_in_the_file() {
    let none = || Serve { directories: Vec::new(), ..flags() };
    let of =
        |file: &str, variables: &[(&str, &str)], flags: &Serve| layered(file, variables, flags).unwrap().directories;
    let file = "directories = ['/a b', '/c,d']";
    assert_eq!(of(file, &[], &none()), [Path::new("/a b"), Path::new("/c,d")]);
    assert_eq!(of("directories = '/a'", &[], &none()), [Path::new("/a")]);
    assert_eq!(of(file, &[("AFFLUX_DIRECTORIES", "e:/f")], &none()), [Path::new("e"), Path::new("/f")]);
    assert_eq!(of(file, &[("AFFLUX_DIRECTORIES", "/e")], &flags()), [Path::new("/srv")]);
    let told = wrong("directories = ['/a', 'b']", &[], &flags());
    assert_eq!(told, "/etc/afflux.toml: directories: 'b' is not an absolute path");
    assert!(wrong("directories = ['/a', 7]", &[], &flags()).contains("a list of texts is expected"), "{told}");
}

#[test]
fn switches_are_on_or_off_and_in_the_file_true_or_false() {
    let of = |file: &str, flags: &Serve| {
        let found = layered(file, &[("AFFLUX_ASYNC_METADATA", "on")], flags).unwrap();
        (found.any_port, found.read_only, found.subtree_check, found.async_metadata, found.prefault)
    };
    assert_eq!(of("", &flags()), (false, false, false, true, true));
    let file = "any_port = true\nread_only = 'on'\nsubtree_check = false\nprefault = false";
    assert_eq!(of(file, &flags()), (true, true, false, true, false));
    assert_eq!(of(file, &Serve { subtree_check: true, ..flags() }), (true, true, true, true, false));
    assert_eq!(wrong("read_only = 'yes'", &[], &flags()), "/etc/afflux.toml: read_only: 'yes' is neither on nor off");
}

#[test]
fn bytes_that_are_no_text_stay_in_a_path_and_are_refused_elsewhere() {
    use std::os::unix::ffi::OsStringExt;

    let value = OsString::from_vec(b"/srv/a\xff:/srv/b".to_vec());
    let mut layers = Layers::default();
    layers.add_environment(&[("AFFLUX_DIRECTORIES".to_owned(), value.clone())]).unwrap();
    let first = PathBuf::from(OsString::from_vec(b"/srv/a\xff".to_vec()));
    assert_eq!(layers.directories, [first, PathBuf::from("/srv/b")]);
    let named = file_path(None, &[("AFFLUX_CONFIG".to_owned(), value.clone())]).unwrap();
    assert_eq!(named, Some(PathBuf::from(value.clone())));
    for name in ["AFFLUX_STATE", "AFFLUX_CONTROL", "AFFLUX_DIRTY_RATIO"] {
        let error = Layers::default().add_environment(&[(name.to_owned(), value.clone())]).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("not UTF-8"), "{error}");
    }
}
