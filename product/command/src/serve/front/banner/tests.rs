use std::path::Path;
use std::sync::LazyLock;

use afflux_nfs::Rules;

use super::{Served, ServedTls, towards_clients};
use crate::serve::start::exports::ServedExport;

static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::of_serving_user(1000));

fn exports(names: &[&str]) -> Vec<ServedExport> {
    let export = |name: &&str| ServedExport {
        given: format!("/mnt/{name}").into(),
        directory: format!("/mnt/{name}").into(),
        path: if names.len() == 1 { "/".to_owned() } else { format!("/{name}") },
    };
    names.iter().map(export).collect()
}

fn served<'a>(exports: &'a [ServedExport], listen: &str) -> Served<'a> {
    Served {
        exports,
        listen: listen.parse().unwrap(),
        rules: &RULES,
        control: Path::new("/run/afflux/a.sock"),
        program: None,
        control_is_named: false,
        figures: None,
        devices: vec![("sda1".into(), "USB, O_DIRECT + io_uring".into())],
        has_version_4: true,
        tls: None,
        cache_bytes: 2 << 30,
        memory_bytes: 23 << 30,
        notes: &[],
        mounted: None,
        towards_clients: None,
    }
}

#[test]
fn one_directory_is_the_root() {
    let exports = exports(&["usb"]);
    let text = served(&exports, "127.0.0.1:2049").text();
    assert_eq!(
        text,
        "Serving /mnt/usb on 127.0.0.1:2049 (NFS 3, 4.1 and 4.2, loopback only)\n  \
           disk    sda1, USB, O_DIRECT + io_uring\n  \
           cache   2.00 GiB of 23.0 GiB\n  \
           mount   sudo mount -t nfs 127.0.0.1:/ /mnt/x\n  \
           paths   begin in the export: /mnt/usb is /mnt/usb/mnt/usb to clients\n  \
           or      nfs-ls 'nfs://127.0.0.1/?nfsport=2049&mountport=2049'\n  \
           watch   afflux stat --watch\n  \
           stop    Ctrl-C (writes everything first)\n  \
           answers this user's and root's processes on this machine, all as this user\n"
    );
}

#[test]
fn a_program_that_is_not_on_the_path_is_called_by_its_own() {
    let exports = exports(&["usb"]);
    let program = Some("/home/a b/target/demo/afflux".into());
    let text = Served { program, ..served(&exports, "127.0.0.1:2049") }.text();
    assert!(text.contains("  watch   '/home/a b/target/demo/afflux' stat --watch\n"), "{text}");
}

#[test]
fn figures_have_an_address_that_can_be_asked() {
    let exports = exports(&["usb"]);
    let figures = |address: &str| Served { figures: address.parse().ok(), ..served(&exports, "127.0.0.1:2049") };
    let text = figures("127.0.0.1:9464").text();
    assert!(text.contains("  figures http://127.0.0.1:9464/metrics (for Prometheus)\n"), "{text}");
    let text = figures("[::]:9464").text();
    assert!(text.contains("http://[::1]:9464/metrics (for Prometheus, and anyone else who can reach it)\n"), "{text}");
    assert!(figures("[::]:9464").json().contains("\"metrics\":\"[::]:9464\""));
    assert!(served(&exports, "127.0.0.1:2049").json().contains("\"metrics\":null"));
}

#[test]
fn several_are_named_and_an_open_address_is_said() {
    let exports = exports(&["a", "b"]);
    let text = served(&exports, "0.0.0.0:111").text();
    assert!(text.contains("(NFS 3, 4.1 and 4.2, open to the network)"), "{text}");
    assert!(text.contains("note    nobody on another machine is answered without --allow\n"), "{text}");
    assert!(text.contains(" 127.0.0.1:/a /mnt/x\n") && text.contains(" 127.0.0.1:/b /mnt/x\n"), "{text}");
    assert!(text.contains("'nfs://127.0.0.1/a?nfsport=111&mountport=111'"), "{text}");
}

#[test]
fn what_a_path_of_this_host_means_to_clients_is_said() {
    let one =
        |path: &str, export: &str| ServedExport { given: path.into(), directory: path.into(), path: export.into() };
    let text = |exports: &[ServedExport]| served(exports, "127.0.0.1:7").text();
    let apart = text(&[one("/srv/a", "/a"), one("/mnt/b", "/b")]);
    assert!(apart.contains("  paths   begin with an export's name: /srv/a is none to clients\n"), "{apart}");
    let clash = text(&[one("/data/srv", "/srv"), one("/srv/data", "/data")]);
    assert!(
        clash.contains("  paths   begin with an export's name: /data/srv is /srv/data/srv to clients\n"),
        "{clash}"
    );
    let store = text(&[one("s3://bucket", "/")]);
    assert!(!store.contains("  paths "), "{store}");
}

#[test]
fn the_lines_work_with_ipv6() {
    let exports = exports(&["usb"]);
    let text = served(&exports, "[::1]:7").text();
    assert!(text.contains("mount -t nfs -o port=7 '[::1]:/' /mnt/x\n"), "{text}");
    let text = Served { has_version_4: false, ..served(&exports, "[::1]:7") }.text();
    assert!(
        text.contains("(NFSv3, loopback only)")
            && text.contains("vers=3,proto=tcp6,nolock,port=7,mountport=7 '[::1]:/' /mnt/x\n"),
        "{text}"
    );
    assert!(text.contains("nfs-ls 'nfs://::1/?nfsport=7&mountport=7'\n"), "{text}");
}

#[test]
fn the_lines_are_words_to_a_shell_and_name_the_socket_if_need_be() {
    let exports = exports(&["a b", "it's"]);
    let control = Path::new("/my sockets/a.sock");
    let text = Served { control, control_is_named: true, ..served(&exports, "127.0.0.1:7") }.text();
    assert!(text.contains(" '127.0.0.1:/a b' /mnt/x\n"), "{text}");
    assert!(text.contains(r" '127.0.0.1:/it'\''s' /mnt/x"), "{text}");
    assert!(text.contains("afflux stat --watch --control '/my sockets/a.sock'\n"), "{text}");
}

#[test]
fn programs_get_one_line_with_the_port() {
    let exports = exports(&["usb"]);
    let text = served(&exports, "127.0.0.1:4711").json();
    assert_eq!(text.lines().count(), 1);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["port"], &value["serving"][0]["export"]), (&4711.into(), &"/".into()));
}

#[test]
fn a_name_controls_no_terminal_and_still_is_a_word_to_a_shell() {
    let exports = exports(&["a\n\x1b'ö\\", "b"]);
    let notes = ["a\x07".to_owned()];
    let text = Served { notes: &notes, ..served(&exports, "127.0.0.1:7") }.text();
    assert!(text.starts_with(r"Serving /mnt/a\n\u001b'ö\, /mnt/b on "), "{text}");
    assert!(text.contains(r" $'127.0.0.1:/a\n\u001b\'ö\\' /mnt/x"), "{text}");
    assert!(text.contains(r"note    a\u0007") && !text.contains('\x1b'), "{text}");
    let value: serde_json::Value = serde_json::from_str(&served(&exports, "127.0.0.1:7").json()).unwrap();
    assert_eq!(value["serving"][0]["export"], "/a\n\x1b'ö\\");
}

#[test]
fn tls_is_in_the_mount_line() {
    let exports = exports(&["usb"]);
    let of =
        |tls, listen: &str, has_version_4| Served { tls: Some(tls), has_version_4, ..served(&exports, listen) }.text();
    let text = of(ServedTls::Offered, "127.0.0.1:2049", true);
    assert!(text.contains("(NFS 3, 4.1 and 4.2, loopback only, TLS for clients that ask for it)"), "{text}");
    assert!(text.contains("sudo mount -t nfs -o xprtsec=tls 127.0.0.1:/ /mnt/x\n"), "{text}");
    let text = of(ServedTls::WithCertificates, "127.0.0.1:7", true);
    assert!(text.contains("-o port=7,xprtsec=mtls 127.0.0.1:/ "), "{text}");
    let text = of(ServedTls::Required, "127.0.0.1:7", false);
    assert!(text.contains("mountport=7,xprtsec=tls 127.0.0.1:/ ") && text.contains(", TLS only)"), "{text}");
}

#[test]
fn a_client_on_another_machine_gets_a_line_with_an_address_that_it_can_use() {
    let exports = exports(&["usb"]);
    let text = Served { towards_clients: "192.0.2.7".parse().ok(), ..served(&exports, "0.0.0.0:2050") }.text();
    assert!(text.contains("  others  sudo mount -t nfs -o port=2050 192.0.2.7:/ /mnt/x\n"), "{text}");
    let rules = |networks: &[&str]| Rules {
        networks: networks.iter().map(|network| network.parse().unwrap()).collect(),
        ..Rules::of_serving_user(0)
    };
    let towards = |listen: &str, networks: &[&str]| towards_clients(listen.parse().unwrap(), &rules(networks));
    assert_eq!(towards("127.0.0.1:2049", &["192.0.2.0/24"]), None, "one address is told already");
    assert_eq!(towards("0.0.0.0:2049", &[]), None, "nobody else is answered");
    assert_eq!(towards("0.0.0.0:2049", &["127.0.0.0/8", "2001:db8::/64"]), None, "they are no others");
}
