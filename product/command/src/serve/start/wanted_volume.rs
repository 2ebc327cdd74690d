//! The settings with which a volume in a store is opened.
//!
//! Owns: the three things that an opening takes of the settings and the host.
//! Does not own: the opening (`stores`).
//! Invariants: none.
#![cfg_attr(not(feature = "object"), allow(dead_code, reason = "this build opens no store"))]

use crate::serve::persisted::StateDirectory;
use crate::settings::ServeSettings;
#[cfg(feature = "object")]
use crate::settings::StoreSettings;

pub(crate) struct WantedVolume<'a> {
    #[cfg(feature = "object")]
    pub(crate) settings: &'a StoreSettings,
    pub(crate) async_metadata: bool,
    pub(crate) state: &'a StateDirectory,
}

impl<'a> WantedVolume<'a> {
    pub(crate) fn of(settings: &'a ServeSettings, state: &'a StateDirectory) -> Self {
        Self {
            #[cfg(feature = "object")]
            settings: &settings.store,
            async_metadata: settings.at_once.async_metadata,
            state,
        }
    }
}
