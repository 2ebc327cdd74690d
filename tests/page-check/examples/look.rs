//! Looks at pages in a browser and prints their faults: `look PICTURES FILE...`. Pictures go to the folder PICTURES.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::path::PathBuf;
use std::process::ExitCode;

use afflux_page_check::{CheckError, Checker};

fn main() -> Result<ExitCode, CheckError> {
    let words = xflags::parse_or_exit! {
        /// The folder of pictures
        required pictures: PathBuf
        /// Files of HTML
        repeated pages: PathBuf
    };
    let mut checker = Checker::start()?;
    let mut faults = 0;
    for page in words.pages {
        let found = checker.check(&page, Some(&words.pictures))?;
        for fault in &found {
            println!("{}: {fault}", page.display());
        }
        faults += found.len();
    }
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
