-- What earlier snapshots said differently than those before them stays.
INSERT INTO snapshot.restatements SELECT * FROM previous.restatements;
