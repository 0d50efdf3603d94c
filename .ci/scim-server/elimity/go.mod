module elimity

go 1.21

require github.com/elimity-com/scim v0.0.0-20260728105928-2641426a1539

require (
	github.com/q-uint/parser v0.3.1 // indirect
	github.com/q-uint/xsd-datetime v1.0.0 // indirect
	github.com/scim2/filter-parser/v2 v2.3.1 // indirect
)
