//! Checks pages as a reader sees them: in a real browser, narrow and wide, light, dark and printed.
//!
//! Owns: driving a headless Chromium (`browser`), the rules of a good page (`look.js`), pictures.
//! Does not own: the pages. No product code imports this crate, which is for tests. With `AFFLUX_PICTURES=DIR` they
//! leave pictures.
//! Invariants: every wait for the browser ends; the browser ends with the check; it may reach nothing, and a page that
//! tries to is at fault.

#![forbid(unsafe_code)]

mod browser;

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Value, json};

pub use browser::installed;
use browser::{Browser, BrowserError};

/// The measurements inside the page.
const LOOK: &str = include_str!("look.js");

/// Widths in CSS pixels: a phone, a desktop.
const WIDTHS: [u32; 2] = [400, 1400];

/// The reason that a page could not be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// A call of the browser failed.
    #[error(transparent)]
    Browser(#[from] BrowserError),
    /// A page could not be found, or a picture could not be written.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
}

/// Checks pages, one after the other.
pub struct Checker {
    browser: Browser,
}

impl Checker {
    /// Starts a browser.
    pub fn start() -> Result<Self, CheckError> {
        Ok(Self { browser: Browser::start()? })
    }

    /// Checks a page and returns its faults, one per line. With `pictures`, puts screenshots and the printed page into
    /// that directory, which is created.
    pub fn check(&mut self, page: &Path, pictures: Option<&Path>) -> Result<Vec<String>, CheckError> {
        let page = page.canonicalize().map_err(|error| CheckError::File(page.to_owned(), error))?;
        let address = format!("file://{}", page.display());
        let mut faults = Vec::new();
        for scheme in ["light", "dark"] {
            for width in WIDTHS {
                let place = format!("{width} px, {scheme}");
                self.browser.show(&address, width, scheme)?;
                faults.extend(self.looked()?.into_iter().map(|fault| format!("{place}: {fault}")));
                if let Some(directory) = pictures {
                    let whole = json!({"captureBeyondViewport": true});
                    let picture = self.browser.bytes("Page.captureScreenshot", &whole)?;
                    keep(directory, &page, &format!("{width}-{scheme}.png"), &picture)?;
                }
            }
        }
        // Printed from a dark screen, on A4: the page itself must restore its light colours.
        let paper =
            json!({"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true, "printBackground": true});
        let print = self.browser.bytes("Page.printToPDF", &paper)?;
        if !print.starts_with(b"%PDF") {
            faults.push("printed: the output is no PDF".to_owned());
        }
        if let Some(directory) = pictures {
            keep(directory, &page, "print.pdf", &print)?;
        }
        self.browser.print_media()?;
        if let Some(directory) = pictures {
            let whole = json!({"captureBeyondViewport": true});
            let picture = self.browser.bytes("Page.captureScreenshot", &whole)?;
            keep(directory, &page, "print.png", &picture)?;
        }
        faults.extend(self.looked()?.into_iter().map(|fault| format!("printed: {fault}")));
        faults.extend(self.browser.complaints(&address));
        Ok(faults)
    }

    /// The faults of the page as it is shown now.
    fn looked(&mut self) -> Result<Vec<String>, CheckError> {
        let found = self.browser.evaluate(LOOK)?;
        let Value::Array(found) = found else {
            return Ok(vec![format!("the check inside the page failed: {found}")]);
        };
        Ok(found.into_iter().map(|fault| fault.as_str().unwrap_or("?").to_owned()).collect())
    }
}

fn keep(directory: &Path, page: &Path, ending: &str, bytes: &[u8]) -> Result<(), CheckError> {
    let stem = page.file_stem().unwrap_or_default().to_string_lossy();
    let path = directory.join(format!("{stem}-{ending}"));
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&path, bytes))
        .map_err(|error| CheckError::File(path.clone(), error))
}
