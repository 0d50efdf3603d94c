-- The used part of a rate limit: one row per policy and subject (a key or an account), reset once its window has ended.

CREATE TABLE quotas (
  policy TEXT NOT NULL,
  subject TEXT NOT NULL,
  window_ends TEXT NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (policy, subject)
);
