//! Pages: one HTML document that needs nothing else.
//!
//! Owns: the document, its style sheet, the order of headings, figures with their captions, folded parts.
//! Does not own: drawings (`plot`, `bars`), tables (`table`), the words, the order of contents.
//! Invariants: nothing is loaded, not even by mistake: the document itself forbids it. Headings descend by one; every
//! figure and every table has a caption; ids are unique. There is no script: the browser unfolds folded parts.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use crate::bars::Bars;
use crate::markup::{escape, prose};
use crate::plot::Plot;
use crate::sheet::Width;
use crate::table::Table;

const STYLE: &str = include_str!("html/style.css");

/// A drawing that a page can have.
#[derive(Clone, Debug)]
pub enum Drawing {
    /// One quantity over another.
    Plot(Plot),
    /// Figures side by side.
    Bars(Bars),
}

impl From<Plot> for Drawing {
    fn from(plot: Plot) -> Self {
        Self::Plot(plot)
    }
}

impl From<Bars> for Drawing {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
    }
}

/// A page, written from top to bottom.
#[derive(Clone, Debug)]
pub struct HtmlPage {
    title: String,
    body: String,
    figures: usize,
}

impl HtmlPage {
    /// A page with a heading. `origin` names the source of its figures: `simulated`, `measured`.
    #[must_use]
    pub fn new(title: impl Into<String>, origin: &str) -> Self {
        let title = title.into();
        let body = format!("<h1>{} <span class=\"origin\">{}</span></h1>\n", escape(&title), escape(origin));
        Self { title, body, figures: 0 }
    }

    /// A heading below the page's own; a title is used once.
    pub fn section(&mut self, title: &str) {
        let _ = writeln!(self.body, "<h2 id=\"{}\">{}</h2>", anchor(title), escape(title));
    }

    /// A line that leads to a section.
    pub fn pointer(&mut self, text: &str, section: &str) {
        let (text, anchor, section) = (prose(text), anchor(section), escape(section));
        let _ = writeln!(self.body, "<p class=\"note\">{text} <a href=\"#{anchor}\">{section}</a></p>");
    }

    /// A paragraph of plain text.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", unbroken(&prose(text)));
    }

    /// The answer: the first text that is read, set off from the rest.
    pub fn answer(&mut self, sentence: &str) {
        let _ = writeln!(self.body, "<p class=\"answer\">{}</p>", prose(sentence));
    }

    /// Text in its original lines: a command, a job file.
    pub fn listing(&mut self, text: &str) {
        let _ = writeln!(self.body, "<pre tabindex=\"0\">{}</pre>", unbroken(&escape(text.trim_end())));
    }

    /// A part for few readers, below a line that names it and opens it.
    pub fn folded(&mut self, line: &str, inside: impl FnOnce(&mut Self)) {
        let _ = writeln!(self.body, "<details>\n<summary>{}</summary>", prose(line));
        inside(self);
        self.body.push_str("</details>\n");
    }

    /// Words with their meanings on this page, in a column.
    pub fn words<N: AsRef<str>, M: AsRef<str>>(&mut self, words: impl IntoIterator<Item = (N, M)>) {
        self.body.push_str("<dl class=\"words\">\n");
        for (word, meaning) in words {
            let (word, meaning) = (escape(word.as_ref()), prose(meaning.as_ref()));
            let _ = writeln!(self.body, "<div><dt>{word}</dt><dd>{meaning}</dd></div>");
        }
        self.body.push_str("</dl>\n");
    }

    /// Names and values, one a line.
    pub fn facts<N: AsRef<str>>(&mut self, facts: impl IntoIterator<Item = (N, String)>) {
        self.body.push_str("<dl>\n");
        for (name, value) in facts {
            let _ = writeln!(self.body, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name.as_ref()), prose(&value));
        }
        self.body.push_str("</dl>\n");
    }

    /// Adds a table at the page's end.
    pub fn table(&mut self, table: &Table) {
        self.body.push_str(&table.html());
    }

    /// A drawing under its title.
    pub fn figure(&mut self, figure: impl Into<Drawing>) {
        let figure = figure.into();
        self.figures += 1;
        let (title, note) = match &figure {
            Drawing::Plot(plot) => (plot.title(), plot.sentence()),
            Drawing::Bars(bars) => (bars.title(), bars.sentence()),
        };
        let note = if note.is_empty() { String::new() } else { format!(" <span>{}</span>", prose(&note)) };
        let _ = writeln!(self.body, "<figure>\n<figcaption><b>{}</b>{note}</figcaption>", prose(title));
        for width in Width::BOTH {
            let id = format!("figure-{}-{}", self.figures, width.class());
            self.body.push_str(&match &figure {
                Drawing::Plot(plot) => plot.svg(width, &id),
                Drawing::Bars(bars) => bars.svg(width, &id),
            });
        }
        self.body.push_str("</figure>\n");
    }

    /// The document. `foot` is its last line.
    #[must_use]
    pub fn html(&self, foot: &str) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; img-src data:\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{}</main>\n\
             <footer>{}</footer>\n</body>\n</html>\n",
            escape(&self.title),
            self.body,
            unbroken(&prose(foot))
        )
    }
}

/// A section's name in an address.
fn anchor(title: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    format!("section-{}", title.chars().map(letter).collect::<String>())
}

/// Inert text in which no line ends inside the name of an option.
fn unbroken(text: &str) -> String {
    let word = |word: &str| {
        let (before, option) = word.split_at(word.len() - word.trim_start_matches('(').len());
        if !option.strip_prefix("--").is_some_and(|name| name.starts_with(|letter: char| letter.is_ascii_alphabetic()))
        {
            return word.to_owned();
        }
        let ends = option.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        let (name, after) = option.split_at(ends.unwrap_or(option.len()));
        format!("{before}<span class=\"option\">{name}</span>{after}")
    };
    text.split_inclusive([' ', '\n']).map(word).collect()
}
