//! The text that `serve` or `mount` prints once it serves.
//!
//! Owns: the words, the commands that reach the server.
//! Does not own: the facts.
//! Invariants: each line can be used as it stands: the port, addresses and export names are those of this server.

#[cfg(test)]
mod tests;

use std::env;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use afflux_nfs::{Rules, TlsUse};
use serde_json::json;

use crate::serve::front::tls::Tls;
use crate::serve::front::{MountFront, admission};
use crate::serve::live::Running;
use crate::serve::start::exports::ServedExport;
use afflux_report::command_line::quoted;
use afflux_report::{output, units};

pub(crate) struct Served<'a> {
    pub(crate) exports: &'a [ServedExport],
    pub(crate) listen: SocketAddr,
    pub(crate) has_version_4: bool,
    pub(crate) tls: Option<ServedTls>,
    pub(crate) rules: &'a Rules,
    pub(crate) control: &'a Path,
    /// The path of this program if a shell does not find it by name, such as in a build's folder.
    pub(crate) program: Option<PathBuf>,
    /// Whether the commands must name the control socket, since it is not at the default path.
    pub(crate) control_is_named: bool,
    /// The address of the figures for Prometheus.
    pub(crate) figures: Option<SocketAddr>,
    /// Name and description of each device.
    pub(crate) devices: Vec<(String, String)>,
    pub(crate) cache_bytes: u64,
    pub(crate) memory_bytes: u64,
    /// Limits of the host, and their effects.
    pub(crate) notes: &'a [String],
    /// The mount of the same directory on this host.
    pub(crate) mounted: Option<&'a Path>,
    /// This machine's address for allowed clients on others, if the server listens on all addresses.
    pub(crate) towards_clients: Option<IpAddr>,
}

/// Which clients are answered, by TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ServedTls {
    /// All; those that ask for TLS are encrypted.
    Offered,
    Required,
    /// Those with a certificate.
    WithCertificates,
    /// Those with a certificate, as the user that it names.
    AsCertified,
}

impl ServedTls {
    pub(crate) fn of(tls: &Tls) -> Self {
        match tls.how {
            TlsUse::CertificateUsers => Self::AsCertified,
            _ if tls.has_clients() => Self::WithCertificates,
            TlsUse::Required => Self::Required,
            TlsUse::Offered => Self::Offered,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Offered => "TLS for clients that ask for it",
            Self::Required => "TLS only",
            Self::WithCertificates => "TLS only, for clients with certificates",
            Self::AsCertified => "TLS only, for clients with certificates, as the users that these name",
        }
    }

    /// The option of Linux's client.
    fn mount_option(self) -> &'static str {
        if matches!(self, Self::WithCertificates | Self::AsCertified) { "xprtsec=mtls" } else { "xprtsec=tls" }
    }
}

impl Served<'_> {
    pub(crate) fn text(&self) -> String {
        let (address, port) = (reachable(self.listen.ip()), self.listen.port());
        // libnfs takes an IPv6 address unchanged, up to the slash.
        let (host, options) = (bracketed(address), self.mount_options(address, port));
        let directories: Vec<String> =
            self.exports.iter().map(|export| output::shown(export.given.display())).collect();
        let who = if self.listen.ip().is_loopback() { "loopback only" } else { "open to the network" };
        let versions = if self.has_version_4 { "NFS 3, 4.1 and 4.2" } else { "NFSv3" };
        let tls = self.tls.map(|tls| format!(", {}", tls.words())).unwrap_or_default();
        let mut text = format!("Serving {} on {} ({versions}, {who}{tls})\n", directories.join(", "), self.listen);
        for (name, description) in &self.devices {
            text.push_str(&format!("  disk    {}, {}\n", output::shown(name), output::shown(description)));
        }
        let (cache, memory) = (units::memory(self.cache_bytes), units::memory(self.memory_bytes));
        text.push_str(&format!("  cache   {cache} of {memory}\n"));
        if let Some(point) = self.mounted {
            text.push_str(&format!("  mounted on {}\n", output::shown(point.display())));
        }
        for export in self.exports {
            let source = quoted(&format!("{host}:{}", export.path));
            text.push_str(&format!("  mount   sudo mount -t nfs {options}{source} /mnt/x\n"));
        }
        if let (Some(address), Some(export)) = (self.towards_clients, self.exports.first()) {
            let (source, options) =
                (format!("{}:{}", bracketed(address), export.path), self.mount_options(address, port));
            text.push_str(&format!("  others  sudo mount -t nfs {options}{} /mnt/x\n", quoted(&source)));
        }
        text.push_str(&self.paths_line().unwrap_or_default());
        let export = self.exports.first().map_or("/", |export| &export.path);
        let url = format!("nfs://{address}{export}?nfsport={port}&mountport={port}");
        text.push_str(&format!("  or      nfs-ls {}\n", quoted(&url)));
        let control = match self.control_is_named {
            true => format!(" --control {}", quoted(&self.control.to_string_lossy())),
            false => String::new(),
        };
        let program = self.program.as_ref().map_or_else(|| "afflux".to_owned(), |path| quoted(&path.to_string_lossy()));
        text.push_str(&format!("  watch   {program} stat --watch{control}\n"));
        text.push_str("  stop    Ctrl-C (writes everything first)\n");
        if let Some(address) = self.figures {
            let reached = SocketAddr::new(reachable(address.ip()), address.port());
            let others = if address.ip().is_loopback() { "" } else { ", and anyone else who can reach it" };
            text.push_str(&format!("  figures http://{reached}/metrics (for Prometheus{others})\n"));
        }
        text.push_str(&format!("  answers {}\n", admission::describe(self.rules)));
        for odd in admission::oddities(self.rules, self.listen) {
            text.push_str(&format!("  note    {odd}\n"));
        }
        for note in self.notes {
            text.push_str(&format!("  note    {}\n", output::shown(note)));
        }
        text
    }

    /// The meaning of a directory's path on this host to clients. None for a volume in a store.
    fn paths_line(&self) -> Option<String> {
        let first = self.exports.first().filter(|export| export.directory.is_absolute())?;
        let shown = |path: &Path| output::shown(path.display()).to_string();
        if first.path == "/" {
            let (path, below) = (&first.directory, first.directory.join(relative(&first.directory)));
            return Some(format!("  paths   begin in the export: {} is {} to clients\n", shown(path), shown(&below)));
        }
        let another = self.exports.iter().find_map(|export| Some((export, self.path_below_an_export(export)?)));
        Some(match another {
            Some((export, below)) => {
                let path = shown(&export.directory);
                format!("  paths   begin with an export's name: {path} is {} to clients\n", shown(&below))
            }
            None => format!("  paths   begin with an export's name: {} is none to clients\n", shown(&first.directory)),
        })
    }

    /// The meaning of an export's path on this host to clients, if it begins with an export's name.
    fn path_below_an_export(&self, export: &ServedExport) -> Option<PathBuf> {
        let other = self.exports.iter().find(|other| export.directory.starts_with(&other.path))?;
        Some(other.directory.join(export.directory.strip_prefix(&other.path).ok()?))
    }

    /// The options that Linux's client needs, with the blank after them.
    fn mount_options(&self, address: IpAddr, port: u16) -> String {
        const NFS_PORT: u16 = 2049;
        // `tcp` means IPv4 to mount.
        let protocol = if address.is_ipv4() { "tcp" } else { "proto=tcp6" };
        let mut options = match self.has_version_4 {
            true if port == NFS_PORT => Vec::new(),
            true => vec![format!("port={port}")],
            false => vec![format!("vers=3,{protocol},nolock,port={port},mountport={port}")],
        };
        options.extend(self.tls.map(|tls| tls.mount_option().to_owned()));
        if options.is_empty() { String::new() } else { format!("-o {} ", options.join(",")) }
    }

    /// For programs: one object.
    pub(crate) fn json(&self) -> String {
        let serving: Vec<_> =
            self.exports.iter().map(|export| json!({ "directory": export.directory, "export": export.path })).collect();
        let devices: Vec<_> =
            self.devices.iter().map(|(name, described)| json!({ "name": name, "described": described })).collect();
        json!({
            "mounted": self.mounted,
            "is": "ready",
            "listen": self.listen.to_string(),
            "address": self.listen.ip().to_string(),
            "port": self.listen.port(),
            "answers": admission::describe(self.rules),
            "tls": self.tls.map(ServedTls::words),
            "control": self.control,
            "metrics": self.figures.map(|address| address.to_string()),
            "cache_bytes": self.cache_bytes,
            "serving": serving,
            "devices": devices,
            "notes": self.notes,
        })
        .to_string()
    }
}

/// Prints the lines of a mount alone once it is served, for people or as one JSON object.
pub(crate) fn print_mount(
    running: &Running,
    mount: &MountFront,
    control: &Path,
    figures: Option<SocketAddr>,
    notes: &[String],
    json: bool,
) {
    let cache_bytes = running.engine.status().cache_bytes;
    let source = running.exports.first().map(|export| export.directory.clone()).unwrap_or_default();
    if json {
        let ready = json!({
            "is": "ready",
            "mounted": mount.point,
            "directory": source,
            "control": control,
            "metrics": figures.map(|address| address.to_string()),
            "cache_bytes": cache_bytes,
            "notes": notes,
        });
        return output::say(ready);
    }
    let (source, point) = (output::shown(source.display()), output::shown(mount.point.display()));
    let mut text = format!("Mounted {source} on {point} (FUSE)\n  cache   {}\n", units::memory(cache_bytes));
    for (name, description) in running.devices.described() {
        text.push_str(&format!("  disk    {}, {}\n", output::shown(name), output::shown(description)));
    }
    text.push_str("  stop    Ctrl-C or umount (both write everything first)\n");
    notes.iter().for_each(|note| text.push_str(&format!("  note    {}\n", output::shown(note))));
    output::say(text.trim_end());
}

/// The path of this program, if a shell does not find it by name.
pub(crate) fn called() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_found = env::split_paths(&path).any(|directory| directory.join("afflux").is_file());
    (!is_found).then(|| env::current_exe().ok()).flatten()
}

/// An absolute path without its beginning.
fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// An address that a client on this machine can use.
pub(crate) fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) if v4.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(v6) if v6.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        other => other,
    }
}

/// The address of this machine for allowed clients on other machines, if the server listens on all addresses. The host
/// chooses by its routes; nothing is sent.
pub(crate) fn towards_clients(listen: SocketAddr, rules: &Rules) -> Option<IpAddr> {
    let of_network =
        |network: &dyn std::fmt::Display| network.to_string().split(['/', '=']).next()?.parse::<IpAddr>().ok();
    let mut networks = rules.networks.iter().filter_map(|network| of_network(network));
    let network = networks.find(|address| listen.ip().is_unspecified() && address.is_ipv4() == listen.is_ipv4())?;
    let socket = UdpSocket::bind(SocketAddr::new(listen.ip(), 0)).ok()?;
    socket.connect(SocketAddr::new(network, listen.port())).ok()?;
    socket.local_addr().ok().map(|own| own.ip()).filter(|own| !own.is_loopback() && !own.is_unspecified())
}

/// With brackets around an IPv6 address, as before a colon.
fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}
