-- A decision as if its file were there already.
INSERT INTO staged (
  file, row, lines, app_id, app_name, visibility, subcategories, alias_of, updated_at, action, reason
)
VALUES (
  $file, $row, 1, $app_id, $app_name, $visibility, $subcategories, $alias_of, $updated_at, $action, $reason
);
