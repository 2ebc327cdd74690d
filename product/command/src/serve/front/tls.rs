//! The server's certificate, its key and the authority of its clients: their files.
//!
//! Owns: reading the files and checking them, before the start and when they have changed; the words about failed
//! handshakes and about a certificate that expires.
//! Does not own: TLS (`afflux-tls`), the moment of a check of the files (`upkeep`).
//! Invariants: a key that other users may read is refused. New files replace the old ones only if they fit each other.
//! A renewal writes one file after the other, and the next check finds both.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use afflux_engine::lock;
use afflux_nfs::TlsUse;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::{bounded_file, output, units};
use afflux_tls::{BadIdentity, TlsIdentity, TlsServer};
use tracing::{info, warn};

use crate::settings::TlsSettings;

const FILE_BYTES_MAX: u64 = 1 << 20;

/// The bits of other users in a file's mode.
const OTHERS: u32 = 0o007;

/// Shortest time between two reports of failed handshakes.
const FAILURES_SAID_EVERY: Duration = Duration::from_secs(10);

const DAY: Duration = Duration::from_secs(86_400);
/// A certificate that expires sooner is reported, once a day.
const TOLD_DAYS: i64 = 14;

/// TLS, as the settings want it.
pub(crate) struct Tls {
    pub(crate) server: Arc<TlsServer>,
    pub(crate) how: TlsUse,
    files: Files,
    looked: Mutex<Looked>,
}

#[derive(Clone)]
struct Files {
    certificates: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
}

/// The numbers that differ after a file was written or replaced.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

/// The findings of the checks of the files.
struct Looked {
    in_force: [Stamp; 3],
    /// The files that did not serve, and whether that was reported.
    wrong: Option<([Stamp; 3], bool)>,
    /// The days to the certificate's end that were reported.
    told_days: Option<i64>,
}

impl Tls {
    /// Reads the files; none if the settings name none.
    ///
    /// # Errors
    /// A file cannot be read or does not serve, or settings are missing.
    pub(crate) fn prepared(settings: &TlsSettings) -> Outcome<Option<Self>> {
        if settings.has_users && settings.clients.is_none() {
            let why = "--tls-users takes the authority of the clients' certificates: see --tls-clients FILE";
            return Err(Failure::wrong_use(why.to_owned()));
        }
        let [certificates, key] = &settings.identity[..] else {
            let without = [(settings.is_required, "--tls-required"), (settings.clients.is_some(), "--tls-clients")];
            return match without.iter().find(|(is_given, _)| *is_given) {
                Some((_, flag)) => Err(Failure::wrong_use(format!("{flag} takes a certificate: see --tls CERT KEY"))),
                None => Ok(None),
            };
        };
        let files = Files { certificates: certificates.clone(), key: key.clone(), clients: settings.clients.clone() };
        let how = match settings {
            TlsSettings { has_users: true, .. } => TlsUse::CertificateUsers,
            TlsSettings { is_required: true, .. } | TlsSettings { clients: Some(_), .. } => TlsUse::Required,
            _ => TlsUse::Offered,
        };
        let looked = Mutex::new(Looked { in_force: files.stamps(), wrong: None, told_days: None });
        let report = report_failed(files.clients.clone());
        let server = files.identity().and_then(|own| TlsServer::new(&own, report).map_err(|wrong| files.wrong(&wrong)));
        Ok(Some(Self { server: server.map_err(Failure::wrong_use)?, how, files, looked }))
    }

    /// Uses the files again if they have changed, and reports a certificate that expires.
    pub(crate) fn look(&self) {
        let mut looked = lock(&self.looked);
        self.look_at_files(&mut looked);
        let days = self.server.expires().map(|at| days_until(at, SystemTime::now()));
        let told = days.filter(|days| *days < TOLD_DAYS);
        if let Some(days) = told.filter(|_| looked.told_days != told) {
            warn!("the certificate {} {}", output::shown(self.files.certificates.display()), end_words(days));
        }
        looked.told_days = told;
    }

    /// The time for which the certificate in use is valid still; zero once it has expired.
    pub(crate) fn valid_for(&self) -> Option<Duration> {
        Some(self.server.expires()?.duration_since(SystemTime::now()).unwrap_or_default())
    }

    fn look_at_files(&self, looked: &mut Looked) {
        let stamps = self.files.stamps();
        if stamps == looked.in_force {
            looked.wrong = None;
            return;
        }
        let renewed = self.files.identity();
        let renewed = renewed.and_then(|own| self.server.renew(&own).map_err(|wrong| self.files.wrong(&wrong)));
        match (renewed, looked.wrong) {
            (Ok(()), _) => {
                info!("the certificate {} was read again", output::shown(self.files.certificates.display()));
                *looked = Looked { in_force: stamps, wrong: None, told_days: looked.told_days };
            }
            (Err(why), Some((same, false))) if same == stamps => {
                warn!("{why}; the certificate from before stays in use");
                looked.wrong = Some((stamps, true));
            }
            (Err(_), Some((same, _))) if same == stamps => {}
            (Err(_), _) => looked.wrong = Some((stamps, false)),
        }
    }

    /// Whether only clients with certificates are answered.
    pub(crate) fn has_clients(&self) -> bool {
        self.files.clients.is_some()
    }
}

/// Whole days until a time, negative ones after it.
fn days_until(at: SystemTime, now: SystemTime) -> i64 {
    let days = |time: Duration| (time.as_secs() / DAY.as_secs()) as i64;
    at.duration_since(now).map_or_else(|past| -1 - days(past.duration()), days)
}

/// The words about a certificate that expires in so many days.
fn end_words(days: i64) -> String {
    match days {
        ..0 => {
            let since = match -1 - days {
                0 => "less than a day".to_owned(),
                days => units::plural(days as u64, "day"),
            };
            format!("expired {since} ago, and clients refuse it: renew it")
        }
        0 => "expires in less than a day: renew it".to_owned(),
        _ => format!("expires in {}: renew it", units::plural(days as u64, "day")),
    }
}

impl Files {
    fn stamps(&self) -> [Stamp; 3] {
        let stamp = |path: &Path| {
            let found = fs::metadata(path).ok()?;
            Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec(), found.size()))
        };
        [stamp(&self.certificates), stamp(&self.key), self.clients.as_deref().and_then(stamp)]
    }

    fn identity(&self) -> Result<TlsIdentity, String> {
        let certificates = read("the certificate", &self.certificates)?;
        let key = read("the key", &self.key)?;
        let mode = fs::metadata(&self.key).map_or(0, |found| found.permissions().mode());
        if mode & OTHERS != 0 {
            let path = output::shown(self.key.display());
            return Err(format!("other users may use the key {path} (mode {:03o}): chmod 600 {path}", mode & 0o777));
        }
        let clients = self.clients.as_deref().map(|path| read("the authority of clients", path)).transpose()?;
        Ok(TlsIdentity { certificates, key, clients })
    }

    fn wrong(&self, wrong: &BadIdentity) -> String {
        let (what, path) = match wrong {
            BadIdentity::Certificate(_) => ("the certificate", &self.certificates),
            BadIdentity::Key(_) => ("the key", &self.key),
            BadIdentity::Clients(_) => ("the authority of clients", self.clients.as_ref().unwrap_or(&self.key)),
        };
        format!("{what} {} does not serve: {wrong}", output::shown(path.display()))
    }
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, String> {
    let failed = |why: String| format!("cannot read {what} {}: {why}", output::shown(path.display()));
    match fs::metadata(path) {
        // Only a regular file retains its bytes for the next check.
        Ok(found) if !found.is_file() => Err(failed("it is no regular file".to_owned())),
        Ok(_) => bounded_file::read(path, FILE_BYTES_MAX).map_err(|error| failed(error.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Reports failed handshakes, but not more often than a person can read.
fn report_failed(clients: Option<PathBuf>) -> impl Fn(IpAddr, &str) + Send + Sync + 'static {
    let last: Mutex<Option<Instant>> = Mutex::new(None);
    move |address, reason| {
        let mut last = lock(&last);
        if last.is_some_and(|last| last.elapsed() < FAILURES_SAID_EVERY) {
            return;
        }
        *last = Some(Instant::now());
        let advice = match &clients {
            _ if reason.contains("fatal alert") => {
                "; the client refused, and its log says why (Linux: tlshd)".to_owned()
            }
            Some(path) if reason.contains("certificate") => {
                format!("; it needs a certificate of an authority in {}", output::shown(path.display()))
            }
            _ => String::new(),
        };
        info!("{address} could not begin TLS: {}{advice}", output::shown(reason));
    }
}

#[cfg(test)]
mod tests;
