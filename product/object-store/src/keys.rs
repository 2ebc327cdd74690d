//! Keys that are read again when the store refuses them.
//!
//! Keys of an hour are usual: a file gets new ones, a role's are renewed. Every source is asked anew: the files of a
//! profile, the file of a web identity, the services of a container and of a machine.
//!
//! Owns: the doubt about the present keys, how often their sources are asked.
//! Does not own: the sources (`connect`, `object_store`), the judgement of an answer (`answer`).
//! Invariants: the sources are asked at most once in [`PAUSE`]. If they give nothing, the present keys stay.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use object_store::{CredentialProvider, Result};

/// The sources are asked no more often.
const PAUSE: Duration = Duration::from_secs(2);

/// Whether the store refused the present keys.
#[derive(Debug, Default)]
pub(crate) struct Doubt(AtomicBool);

impl Doubt {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn settle(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A source of keys.
pub(crate) type Source<C> = Arc<dyn CredentialProvider<Credential = C>>;
type Ask<C> = Box<dyn Fn() -> Result<Source<C>> + Send + Sync>;

/// The keys of a connection.
pub(crate) struct FreshKeys<C> {
    ask: Ask<C>,
    doubt: Arc<Doubt>,
    present: Mutex<Present<C>>,
}

struct Present<C> {
    source: Source<C>,
    asked: Instant,
}

impl<C> FreshKeys<C> {
    /// Begins with a source, and asks for others when the store refuses its keys.
    pub(crate) fn new(
        doubt: &Arc<Doubt>,
        source: Source<C>,
        ask: impl Fn() -> Result<Source<C>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let present = Mutex::new(Present { source, asked: Instant::now() });
        Arc::new(Self { ask: Box::new(ask), doubt: Arc::clone(doubt), present })
    }

    /// The source to use: a new one if the store refused the keys of the present one.
    fn source(&self) -> Source<C> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if self.doubt.is_raised() && present.asked.elapsed() >= PAUSE {
            present.asked = Instant::now();
            if let Ok(source) = (self.ask)() {
                present.source = source;
                self.doubt.settle();
            }
        }
        Arc::clone(&present.source)
    }
}

#[async_trait]
impl<C: fmt::Debug + Send + Sync + 'static> CredentialProvider for FreshKeys<C> {
    type Credential = C;

    async fn get_credential(&self) -> Result<Arc<C>> {
        let keys = self.source().get_credential().await;
        if keys.is_err() {
            self.doubt.raise();
        }
        keys
    }
}

impl<C> fmt::Debug for FreshKeys<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreshKeys")
    }
}

#[cfg(test)]
mod tests;
