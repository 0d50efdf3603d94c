// A SCIM server of elimity-com/scim over memory. TOKEN is the expected token. Prints its address.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/elimity-com/scim"
	"github.com/elimity-com/scim/errors"
	"github.com/elimity-com/scim/optional"
	"github.com/elimity-com/scim/schema"
)

type memory struct {
	lock  sync.Mutex
	next  int
	order []string
	rows  map[string]scim.Resource
}

func (m *memory) put(id string, attributes scim.ResourceAttributes) scim.Resource {
	resource := scim.Resource{ID: id, Attributes: attributes}
	if external, ok := attributes["externalId"].(string); ok {
		resource.ExternalID = optional.NewString(external)
	}
	m.rows[id] = resource
	return resource
}

func (m *memory) Create(_ *http.Request, attributes scim.ResourceAttributes) (scim.Resource, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.next++
	id := fmt.Sprintf("id-%d", m.next)
	m.order = append(m.order, id)
	return m.put(id, attributes), nil
}

func (m *memory) Get(_ *http.Request, id string) (scim.Resource, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	resource, ok := m.rows[id]
	if !ok {
		return scim.Resource{}, errors.ScimErrorResourceNotFound(id)
	}
	return resource, nil
}

func (m *memory) GetAll(_ *http.Request, params scim.ListRequestParams) (scim.Page, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	page := scim.Page{TotalResults: len(m.rows)}
	position := 0
	for _, id := range m.order {
		resource, ok := m.rows[id]
		if !ok {
			continue
		}
		position++
		if position >= params.StartIndex && len(page.Resources) < params.Count {
			page.Resources = append(page.Resources, resource)
		}
	}
	return page, nil
}

func (m *memory) Replace(_ *http.Request, id string, attributes scim.ResourceAttributes) (scim.Resource, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if _, ok := m.rows[id]; !ok {
		return scim.Resource{}, errors.ScimErrorResourceNotFound(id)
	}
	return m.put(id, attributes), nil
}

func (m *memory) Patch(_ *http.Request, id string, _ []scim.PatchOperation) (scim.Resource, error) {
	return scim.Resource{}, errors.ScimErrorResourceNotFound(id)
}

func (m *memory) Delete(_ *http.Request, id string) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.rows, id)
	return nil
}

func resourceType(name string, core schema.Schema) scim.ResourceType {
	return scim.ResourceType{
		Name:     name,
		Endpoint: "/" + name + "s",
		Schema:   core,
		Handler:  &memory{rows: map[string]scim.Resource{}},
	}
}

func main() {
	server, err := scim.NewServer(&scim.ServerArgs{
		ServiceProviderConfig: &scim.ServiceProviderConfig{},
		ResourceTypes: []scim.ResourceType{
			resourceType("User", schema.CoreUserSchema()),
			resourceType("Group", schema.CoreGroupSchema()),
		},
	})
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s/v2\n", listener.Addr())
	panic(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+os.Getenv("TOKEN") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		server.ServeHTTP(w, r)
	})))
}
