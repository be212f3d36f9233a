"""Jobs on Apache Beam: text to records, text to vectors; and the download of a corpus."""
