use std::ffi::OsString;
use std::path::{Path, PathBuf};

use afflux_nfs::Squash;
use tracing::level_filters::LevelFilter;

use afflux_linux_device::IoChoice;
use clap::Parser;

use super::{Configuration, Layers, file_path};
use crate::args::{Command, CommandLine, Serve};
use crate::knobs;
use crate::settings::{self, ReloadedSettings};
use afflux_linux_device::HostMemory;
use afflux_report::failure::{Failure, Outcome};

const HOST: HostMemory = HostMemory { total_bytes: 8 << 30, available_bytes: 8 << 30 };

fn serve(words: &[&str]) -> Serve {
    let words = ["afflux", "serve"].iter().chain(words);
    match CommandLine::try_parse_from(words).unwrap().command {
        Command::Serve(serve) => serve,
        other => panic!("{other:?}"),
    }
}

fn flags() -> Serve {
    serve(&["/srv"])
}

/// Clap's error for a flag.
fn refused(words: &[&str]) -> String {
    let words = ["afflux", "serve", "/srv"].iter().chain(words);
    CommandLine::try_parse_from(words).unwrap_err().to_string()
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
    let settings = found.settings;
    assert_eq!(settings.listen.to_string(), "127.0.0.1:2049");
    assert_eq!((found.cache_bytes, settings.io, settings.control), (2 << 30, IoChoice::Auto, None));
    assert!(found.knobs.is_empty());
}

#[test]
fn figures_are_given_where_it_is_said_and_nowhere_else() {
    assert_eq!(layered("", &[], &flags()).unwrap().settings.metrics, None);
    let found = layered("metrics = '127.0.0.1:9464'", &[("AFFLUX_METRICS", "[::1]:1")], &flags()).unwrap();
    assert_eq!(found.settings.metrics.map(|address| address.to_string()), Some("[::1]:1".to_owned()));
    for nonsense in ["9464", "here", "127.0.0.1:70000", ""] {
        let told = refused(&["--metrics", nonsense]);
        assert!(told.contains("--metrics") && told.contains("127.0.0.1:9464"), "{told}");
    }
}

#[test]
fn the_log_has_a_level_by_name() {
    assert_eq!(layered("", &[], &flags()).unwrap().settings.log, LevelFilter::INFO);
    assert_eq!(layered("log = 'warn'", &[], &flags()).unwrap().settings.log, LevelFilter::WARN);
    let told = wrong("", &[("AFFLUX_LOG", "7")], &flags());
    assert!(told.contains("AFFLUX_LOG") && told.contains("off, error, warn, info, debug, trace"), "{told}");
}

#[test]
fn io_goes_by_name() {
    let found = layered("io = 'syscalls'", &[], &flags()).unwrap();
    assert_eq!(found.settings.io, IoChoice::Syscalls);
    let told = wrong("", &[("AFFLUX_IO", "aio")], &flags());
    assert!(told.contains("AFFLUX_IO") && told.contains("uring, syscalls"), "{told}");
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
    let flags = serve(&["/srv", "--listen", "[::1]:3", "--set", "dirty_ratio=32", "--set", "dirty_ratio = 33"]);
    let found = layered(file, &environment, &flags).unwrap();
    assert_eq!(found.settings.listen.to_string(), "[::1]:3");
    assert_eq!((found.cache_bytes, found.settings.io), (64 << 20, IoChoice::Uring));
    assert_eq!(found.knobs, ["dirty_ratio= 33", "readahead_bytes_max=2MiB", "writeback_depth=4"]);
}

#[test]
fn an_unknown_name_is_an_error_that_names_place_name_and_the_allowed() {
    let text = wrong("\ncachee = 1", &[], &flags());
    let of_stores = if cfg!(feature = "object") {
        " endpoint, standby, take_over, follow, snapshot, compression, disk_cache, disk_cache_size,"
    } else {
        ""
    };
    let allowed = format!(
        "listen, nfs, rpcbind, posix_locks, delegations, cache, arena, io, prefault, lock_memory, allow, squash, anon, groups, any_port, \
         read_only, async_metadata, subtree_check, shared, tls, tls_required, tls_clients, tls_users,{of_stores} mount, kernel_cache, sole, sync, dirsync, state, control, metrics, log, \
         directories, knobs"
    );
    assert_eq!(
        text,
        format!("/etc/afflux.toml:2: there is no setting 'cachee' (did you mean 'cache'?); allowed are {allowed}")
    );
    let text = wrong("[knobs]\ndirty = 1", &[], &flags());
    assert!(text.starts_with("/etc/afflux.toml:2: there is no knob 'dirty' (did you mean 'dirty_bytes', "), "{text}");
    let text = wrong("", &[], &serve(&["/srv", "--set", "dirty=1"]));
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
    assert!(
        warning.contains(wanted) && warning.contains("settings: AFFLUX_LISTEN, AFFLUX_NFS, AFFLUX_RPCBIND, "),
        "{warning}"
    );
    let odd = layered("", &[("AFFLUX_\x1b[2J", "")], &flags()).unwrap().warnings;
    assert!(odd[0].contains("AFFLUX_\\u001b[2J is not a setting and is ignored"), "{odd:?}");
    assert!(layered("", &[("AFFLUX_CONFIG", "x")], &flags()).unwrap().warnings.is_empty());
    for (name, value, range) in [("CACHE", "1MiB", "16.0 MiB to "), ("DIRTY_RATIO", "91", "1 to 90 percent")] {
        let name = format!("AFFLUX_{name}");
        let text = wrong("", &[(&name, value), ("AFFLUX_PORT", "1")], &flags());
        assert!(text.contains(&name) && text.contains(value) && text.contains(range), "{text}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_an_error_that_names_its_place() {
    assert!(wrong("\n\ncache = true", &[], &flags()).starts_with("/etc/afflux.toml:3: cache: a number or a string"));
    assert!(
        wrong("cache = 1", &[], &flags()).contains("'1' for '/etc/afflux.toml:1: cache': out of range (16.0 MiB to")
    );
    assert!(wrong("[knobs]\n\ndirty_ratio = []", &[], &flags()).starts_with("/etc/afflux.toml:3: knobs.dirty_ratio: "));
    assert!(wrong("knobs = 1", &[], &flags()).contains("'knobs' is not a table"));
    assert!(wrong("cache = ", &[], &flags()).starts_with("/etc/afflux.toml: TOML parse error at line 1"));
    assert!(wrong("prefault = 'yes'", &[], &flags()).contains("[possible values: on, off]"));
    let off = layered("prefault = 'on'", &[("AFFLUX_PREFAULT", "off")], &flags()).unwrap();
    assert!(!off.settings.prefault && layered("", &[], &flags()).unwrap().settings.prefault);
    let text = wrong("io = 'fast'", &[], &flags());
    assert!(text.contains("'fast' for '/etc/afflux.toml:1: io'") && text.contains("auto, uring, syscalls"), "{text}");
    let text = wrong("", &[("AFFLUX_IO", "")], &flags());
    assert!(text.contains("value is required for 'AFFLUX_IO'") && text.contains("auto, uring, syscalls"), "{text}");
    assert!(refused(&["--io", "fast"]).contains("'fast' for '--io <HOW>'"));
    let text = wrong("", &[], &serve(&["/srv", "--set", "dirty_ratio"]));
    assert_eq!(text, "--set: 'dirty_ratio' is not KNOB=VALUE");
}

#[test]
fn who_is_answered_comes_from_all_sources() {
    let at_once = |file: &str, variables: &[(&str, &str)], flags: &Serve| {
        layered(file, variables, flags).unwrap().settings.at_once
    };
    let none = at_once("", &[], &flags());
    assert_eq!((none.allow.len(), none.squash, none.anon), (0, Squash::Root, (65_534, 65_534)));
    let file = "allow = '192.0.2.0/24, 198.51.100.7=ro'\nsquash = 'all'\nanon = '7:8'";
    let found = at_once(file, &[("AFFLUX_SQUASH", "none")], &flags());
    let shown: Vec<String> = found.allow.iter().map(ToString::to_string).collect();
    assert_eq!((&shown[..], found.squash), (&["192.0.2.0/24".into(), "198.51.100.7/32=ro".into()][..], Squash::None));
    assert_eq!(found.anon, (7, 8));
    let list = at_once("allow = ['192.0.2.0/24', '198.51.100.7']", &[], &flags());
    assert_eq!(list.allow.len(), 2);
    assert_eq!(at_once(file, &[("AFFLUX_ALLOW", "::/0 10.0.0.0/8,10.1.0.0/16")], &flags()).allow.len(), 3);
    let flag = serve(&["/srv", "--allow", "::/0", "--allow", "0.0.0.0/0=ro,10.0.0.0/8"]);
    let shown: Vec<String> = at_once(file, &[], &flag).allow.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["::/0", "0.0.0.0/0=ro", "10.0.0.0/8"]);
    assert!(wrong("allow = 'everybody'", &[], &flags()).contains("'everybody' is no address or network"));
    assert!(wrong("squash = 'some'", &[], &flags()).contains("[possible values: root, all, none]"));
    for anon in ["7", "7:", ":", "x:8", "7:8:9", "4294967295:0", "-1:0"] {
        let text = wrong("", &[("AFFLUX_ANON", anon)], &flags());
        assert!(text.contains(&format!("'{anon}' for 'AFFLUX_ANON': not a user's and a group's number")), "{text}");
    }
}

#[test]
fn a_bad_address_is_told_with_the_value() {
    for listen in ["", "2049", "127.0.0.1", "127.0.0.1:65536", "localhost:x", "1.2.3:5", "::1:2049:"] {
        let text = refused(&["--listen", listen]);
        assert!(text.contains(&format!("'{listen}' for '--listen <ADDR:PORT>': not an address")), "{text}");
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
            let text = wrong("", &[], &serve(&["/srv", "--set", &assignment]));
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
    let none = serve(&[]);
    let told = wrong(text, &[], &none);
    assert!(told.starts_with("no directory to serve: name one") && told.contains("'directories'"), "{told}");
    let is_setting = |line: &&str| line.starts_with('#') && !line.starts_with("# ") && *line != "#";
    let lines: Vec<&str> = text.lines().map(|line| if is_setting(&line) { &line[1..] } else { line }).collect();
    let found = layered(&lines.join("\n"), &[], &none).unwrap();
    assert_eq!(found.settings.directories, [Path::new("/srv/share")]);
    assert_eq!((found.settings.at_once.allow.len(), found.cache_bytes), (2, 2 << 30));
    assert_eq!(found.knobs, ["budget_ms=1000", "hang_error_ms=0"]);
    let settings = text.lines().filter(is_setting).count();
    assert_eq!(settings, found.given.len() + found.knobs.len(), "each line is read as a setting");
    // The defaults in its comments are true.
    let plain = layered("", &[], &flags()).unwrap();
    assert_eq!(found.settings.listen, plain.settings.listen);
    let (found_at_once, plain) = (found.settings.at_once, plain.settings.at_once);
    assert_eq!((found_at_once.squash, found_at_once.anon), (plain.squash, plain.anon));
    let switches = (found_at_once.any_port, found_at_once.read_only, found_at_once.async_metadata);
    assert_eq!(switches, (false, false, false));
    for assignment in &found.knobs {
        let (knob, value) = assignment.split_once('=').unwrap();
        let settings = knobs::of_server();
        assert_eq!(settings.info(settings.named(knob).unwrap()).default.to_string(), value, "{knob}");
    }
}

#[test]
fn directories_come_from_all_sources_and_are_whole_paths_in_the_file() {
    let none = || serve(&[]);
    let of = |file: &str, variables: &[(&str, &str)], flags: &Serve| {
        layered(file, variables, flags).unwrap().settings.directories
    };
    let file = "directories = ['/a b', '/c,d']";
    assert_eq!(of(file, &[], &none()), [Path::new("/a b"), Path::new("/c,d")]);
    assert_eq!(of("directories = '/a'", &[], &none()), [Path::new("/a")]);
    assert_eq!(of(file, &[("AFFLUX_DIRECTORIES", "e:/f")], &none()), [Path::new("e"), Path::new("/f")]);
    assert_eq!(of(file, &[("AFFLUX_DIRECTORIES", "/e")], &flags()), [Path::new("/srv")]);
    let told = wrong("directories = ['/a', 'b']", &[], &flags());
    assert_eq!(told, "/etc/afflux.toml:1: directories: 'b' is not an absolute path");
    assert!(wrong("directories = ['/a', 7]", &[], &flags()).contains("'7' is not an absolute path"));
    assert!(wrong("directories = ['/a', []]", &[], &flags()).contains("not a value of type array"));
    // The name of a directory may look like a flag.
    let found = of("", &[("AFFLUX_DIRECTORIES", "--shared")], &none());
    assert_eq!(found, [Path::new("--shared")]);
}

#[test]
fn switches_are_on_or_off_and_in_the_file_true_or_false() {
    let of = |file: &str, flags: &Serve| {
        let found = layered(file, &[("AFFLUX_ASYNC_METADATA", "on")], flags).unwrap();
        let settings::ServeSettings { at_once: ReloadedSettings { any_port, read_only, async_metadata, .. }, .. } =
            found.settings;
        (any_port, read_only, found.settings.subtree_check, async_metadata, found.settings.prefault)
    };
    assert_eq!(of("", &flags()), (false, false, false, true, true));
    let file = "any_port = true\nread_only = 'on'\nsubtree_check = false\nprefault = false";
    assert_eq!(of(file, &flags()), (true, true, false, true, false));
    assert_eq!(of(file, &serve(&["/srv", "--subtree-check"])), (true, true, true, true, false));
    assert_eq!(wrong("read_only = 'yes'", &[], &flags()), "/etc/afflux.toml:1: read_only: 'yes' is neither on nor off");
}

#[test]
fn bytes_that_are_no_text_stay_in_a_path_and_are_refused_elsewhere() {
    use std::os::unix::ffi::OsStringExt;

    let value = OsString::from_vec(b"/srv/a\xff:/srv/b".to_vec());
    let mut layers = Layers::default();
    layers.add_environment(&[("AFFLUX_DIRECTORIES".to_owned(), value.clone())]).unwrap();
    let first = PathBuf::from(OsString::from_vec(b"/srv/a\xff".to_vec()));
    let directories = layers.checked(HOST).unwrap().settings.directories;
    assert_eq!(directories, [first, PathBuf::from("/srv/b")]);
    let named = file_path(None, &[("AFFLUX_CONFIG".to_owned(), value.clone())]).unwrap();
    assert_eq!(named, Some(PathBuf::from(value.clone())));
    let mut layers = Layers::default();
    layers.add_environment(&[("AFFLUX_STATE".to_owned(), value.clone())]).unwrap();
    layers.add_flags(&flags()).unwrap();
    assert_eq!(layers.checked(HOST).unwrap().settings.state, Some(PathBuf::from(value.clone())));
    for name in ["AFFLUX_CACHE", "AFFLUX_ALLOW", "AFFLUX_DIRTY_RATIO"] {
        let mut layers = Layers::default();
        let added = layers.add_environment(&[(name.to_owned(), value.clone())]);
        let error = added.and_then(|()| layers.checked(HOST)).unwrap_err().to_string();
        assert!(error.contains("UTF-8"), "{error}");
    }
}

#[test]
fn every_setting_is_a_flag_a_variable_and_a_key_of_the_file() {
    for arg in settings::all().iter().filter(|arg| !arg.is_positional()) {
        let id = arg.get_id().as_str();
        assert_eq!(arg.get_long().unwrap().replace('-', "_"), id);
        let value = match arg.get_possible_values().first() {
            _ if settings::is_on_or_off(arg) => "on".to_owned(),
            Some(value) => value.get_name().to_owned(),
            None => arg.get_default_values().first().map_or("1GiB".into(), |text| text.to_string_lossy().into_owned()),
        };
        let value = match id {
            "metrics" => "127.0.0.1:9464".to_owned(),
            "allow" => "192.0.2.7/32".to_owned(),
            "tls" => "/a.pem,/b.pem".to_owned(),
            "compression" => "zstd:5".to_owned(),
            _ => value,
        };
        let file = layered(&format!("{id} = '{value}'"), &[], &flags()).unwrap();
        let variable = layered("", &[(&format!("AFFLUX_{}", id.to_uppercase()), &value)], &flags()).unwrap();
        let long = format!("--{}", arg.get_long().unwrap());
        let word = format!("{long}={value}");
        let is_switch = matches!(arg.get_action(), clap::ArgAction::SetTrue);
        let words = match id {
            "tls" => vec!["/srv", &long, "/a.pem", "/b.pem"],
            _ if is_switch => vec!["/srv", &long],
            _ => vec!["/srv", &word],
        };
        let typed = layered("", &[], &serve(&words)).unwrap();
        let shown = format!("{:?}", typed.settings);
        assert_eq!(
            [format!("{:?}", file.settings), format!("{:?}", variable.settings)],
            [shown.clone(), shown],
            "{id}"
        );
        let given: Vec<_> = value.split(',').map(OsString::from).collect();
        assert_eq!(typed.given[arg.get_id()], given, "{id}");
    }
}

#[test]
fn a_certificate_goes_with_its_key() {
    let together = |text: &str| layered(text, &[], &flags()).map(|found| found.settings.tls.identity);
    let both = [PathBuf::from("/a b.pem"), PathBuf::from("/c.pem")];
    assert_eq!(together("tls = ['/a b.pem', '/c.pem']").unwrap(), both);
    for wrong in ["['/a.pem']", "'/a.pem'", "['/a', '/b', '/c']", "[]"] {
        let error = together(&format!("tls = {wrong}")).unwrap_err().to_string();
        assert!(error.contains("tls: CERT and KEY are expected, not "), "{error}");
    }
    assert!(
        layered("", &[("AFFLUX_TLS", "/a.pem")], &flags()).unwrap_err().to_string().starts_with("AFFLUX_TLS: CERT and")
    );
}

/// A reload reads these sources, too.
#[test]
fn shown_locks_take_version_4_and_directories_of_the_host() {
    let refused = |file: &str, position: &str| wrong(&format!("posix_locks = true\n{file}"), &[], &serve(&[position]));
    assert!(refused("nfs = '3'", "/srv").contains("which --nfs 3 refuses"));
    assert!(refused("", "s3://bucket/a").contains("s3://bucket/a but through this server"));
}

#[test]
fn the_page_about_the_service_has_each_setting_where_a_reload_has_it() {
    let page = include_str!("../../../../docs/use/install.md");
    let from = |head: &str| page.split_once(head).unwrap().1;
    let (at_once, waiting) = (from("- At once"), from("- At the next restart"));
    let named =
        |text: &str, end: &str, setting: &str| text.split(end).next().unwrap().contains(&format!("`{setting}`"));
    for arg in settings::all() {
        let setting = arg.get_id().as_str();
        let acts_at_once = settings::may_act_at_once(arg.get_id());
        assert_eq!(named(at_once, "- At the next", setting), acts_at_once, "{setting}");
        assert_eq!(named(waiting, "- A file", setting), !acts_at_once, "{setting}");
    }
}
