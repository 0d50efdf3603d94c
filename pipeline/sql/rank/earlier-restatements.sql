-- What earlier snapshots said differently than those before them stays.
INSERT INTO snapshot.restatements BY NAME SELECT * FROM previous.restatements;
